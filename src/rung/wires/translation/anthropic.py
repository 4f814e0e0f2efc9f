"""Translator of Anthropic's Messages API."""

from __future__ import annotations

from typing import Final

from rung.wires.translation.anthropic_answer import read_answer, write_answer
from rung.wires.translation.anthropic_events import AnthropicStreamReader, AnthropicStreamWriter
from rung.wires.translation.anthropic_request import read_request, write_request
from rung.wires.translation.conversation import Family
from rung.wires.translation.format import WireTranslator

ANTHROPIC_TRANSLATOR: Final = WireTranslator(
    family=Family.ANTHROPIC,
    read_request=read_request,
    write_request=write_request,
    read_answer=read_answer,
    write_answer=write_answer,
    stream_reader=AnthropicStreamReader,
    stream_writer=AnthropicStreamWriter,
)
