"""Translator of one wire format: its readers and writers of requests, answers and streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rung.wires.translation.answer import Answer, AnswerEvent, WrittenAnswer
    from rung.wires.translation.conversation import Conversation, Family, WrittenRequest


class StreamReader(Protocol):
    """Reads the bytes of one stream, however they are split."""

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Return the events that these bytes complete. Raise ValueError if an event is not valid JSON."""
        ...

    def finish(self) -> list[AnswerEvent]:
        """Return the events that only the regular end of the transfer completes, such as an end without its marker."""
        ...


class StreamWriter(Protocol):
    """Writes the events of one answer in the order that strict parsers of the wire demand."""

    dropped: set[str]  # names of what the wire cannot say, so far

    def write(self, events: Iterable[AnswerEvent]) -> bytes:
        """Return the bytes of these events."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTranslator:
    """Functions of one wire format. All are pure, except for the state of one stream."""

    family: Family
    read_request: Callable[[Mapping[str, Any]], Conversation]
    write_request: Callable[[Conversation], WrittenRequest]
    read_answer: Callable[[Mapping[str, Any]], Answer]
    # `conversation` is the client's request: some wires repeat parts of it in the answer.
    write_answer: Callable[[Answer, Conversation], WrittenAnswer]
    stream_reader: Callable[[], StreamReader]
    stream_writer: Callable[[Conversation], StreamWriter]
