"""Neutral answer of a model, whole or as a stream of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rung.core.domain.usage import Usage as Usage  # noqa: PLC0414  # the usage of an answer is part of this module
from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

AnswerPart = TextPart | RefusalPart | MediaPart | ToolCallPart | ReasoningPart | ForeignPart


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"  # the model or a filter of its provider declined
    PAUSE = "pause"  # the provider's own tools take longer; the client sends the answer back to go on
    CONTEXT_WINDOW = "context_window"
    MALFORMED_CALL = "malformed_call"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whole answer."""

    family: Family
    id: str
    model: str
    parts: tuple[AnswerPart, ...]
    stop: Stop
    stop_sequence: str = ""
    usage: Usage = field(default_factory=Usage)
    created: int = 0  # seconds since 1970; 0 if the wire does not say it
    extras: Mapping[str, Any] = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAnswer:
    """Answer in a wire format. `dropped` names what the wire cannot say."""

    body: dict[str, Any]
    dropped: tuple[str, ...] = ()


# -- streams: the events of one answer, in this order: Started, any content, Ended. An error ends a stream, too. ---------


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Beginning of an answer. `usage` is what is known at that time."""

    id: str
    model: str
    created: int = 0
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of text. A reader starts a new `block` for text that its wire separates from the text before."""

    text: str
    block: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalDelta:
    """A piece of a refusal."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of reasoning for people. It never crosses families: writers drop it, or show it as their wire allows."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """Beginning of a tool call. `index` counts the calls of the answer from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """A piece of the JSON text of a call's arguments."""

    index: int
    json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """The arguments of a call are complete. An answer that breaks off before it has an incomplete call."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignBlock:
    """Content that only the family of the upstream can say. Writers of other wires drop it, and name its kind."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Regular end of an answer. The readers give it at the end marker of their wire, never at the end of the data."""

    stop: Stop
    stop_sequence: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFailed:
    """Error event: its name and its data as the upstream sent them."""

    name: str
    data: str


AnswerEvent = (
    Started
    | TextDelta
    | RefusalDelta
    | ReasoningDelta
    | CallStarted
    | CallDelta
    | CallEnded
    | ForeignBlock
    | Ended
    | StreamFailed
)
