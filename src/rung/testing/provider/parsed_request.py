"""Parsed requests, in one form for all APIs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHARACTERS_PER_TOKEN: Final = 4  # approximate, but deterministic


class LabWire(StrEnum):
    """The model APIs."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"
    GEMINI = "gemini"


class InvalidRequest(Exception):
    """A request the provider would reject: its message, and for OpenAI the parameter and the code."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        self.message = message
        self.param = param
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTurn:
    """One turn of the conversation: role, text, ids of tool calls and of tool results."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTool:
    """A tool the model may call."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """A parsed request: `limit` is the output limit, `tokens` the input size, both in tokens."""

    wire: LabWire
    model: str
    stream: bool = False
    limit: int | None = None
    tokens: int = 0
    turns: tuple[ParsedTurn, ...] = ()
    tools: tuple[ParsedTool, ...] = ()
    forced: str | None = None  # tool that must be called; "" is any
    thinking: bool = False
    usage: bool = False  # the stream ends with its usage
    schema: Mapping[str, Any] | None = None  # JSON Schema of the answer
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields of one API only

    @property
    def calls(self) -> int:
        """Return the number of model turns with tool calls so far."""
        return sum(turn.role == "assistant" and bool(turn.calls) for turn in self.turns)


def count_tokens(value: Any) -> int:
    """Return the approximate number of tokens of a part of a request."""
    return sum(map(len, _texts(value))) // CHARACTERS_PER_TOKEN


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif value is not None:
        yield str(value)


def as_list(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; a plain text becomes one text part."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def as_table(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object field of the body; empty if it is missing."""
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise InvalidRequest(f"{name}: Input should be an object", name, "invalid_type")
    return value or {}


def joined_text(parts: list[dict[str, Any]]) -> str:
    """Return the joined text of the parts."""
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def first_int(body: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of these fields that is an integer."""
    return next((body[name] for name in names if isinstance(body.get(name), int)), None)
