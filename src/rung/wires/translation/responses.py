"""Translator of OpenAI's Responses API."""

from __future__ import annotations

from typing import Final

from rung.wires.translation.conversation import Family
from rung.wires.translation.format import WireTranslator
from rung.wires.translation.responses_answer import read_answer, write_answer
from rung.wires.translation.responses_event_writer import ResponsesStreamWriter
from rung.wires.translation.responses_events import ResponsesStreamReader
from rung.wires.translation.responses_request import read_request, write_request

RESPONSES_TRANSLATOR: Final = WireTranslator(
    family=Family.RESPONSES,
    read_request=read_request,
    write_request=write_request,
    read_answer=read_answer,
    write_answer=write_answer,
    stream_reader=ResponsesStreamReader,
    stream_writer=ResponsesStreamWriter,
)
