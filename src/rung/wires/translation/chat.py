"""Translator of OpenAI's Chat Completions API."""

from __future__ import annotations

from typing import Final

from rung.wires.translation.chat_answer import read_answer, write_answer
from rung.wires.translation.chat_events import ChatStreamReader, ChatStreamWriter
from rung.wires.translation.chat_request import read_request, write_request
from rung.wires.translation.conversation import Family
from rung.wires.translation.format import WireTranslator

CHAT_TRANSLATOR: Final = WireTranslator(
    family=Family.CHAT,
    read_request=read_request,
    write_request=write_request,
    read_answer=read_answer,
    write_answer=write_answer,
    stream_reader=ChatStreamReader,
    stream_writer=ChatStreamWriter,
)
