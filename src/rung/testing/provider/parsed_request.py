"""What a request asks for, whatever wire it came over."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHARACTERS: Final = 4  # a token's worth of text; nobody's tokenizer, but the same on every machine


class LabWire(StrEnum):
    """The three ways to ask a model."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"


class InvalidRequest(Exception):
    """A request the provider would refuse: its words, and where its wire has them the parameter and the code."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        self.message = message
        self.param = param
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTurn:
    """One turn of the conversation: who, what words, the tools it calls or answers."""

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
    """A request, read: `limit` is of output tokens, `tokens` what the input counts."""

    wire: LabWire
    model: str
    stream: bool = False
    limit: int | None = None
    tokens: int = 0
    turns: tuple[ParsedTurn, ...] = ()
    tools: tuple[ParsedTool, ...] = ()
    forced: str | None = None  # the tool that must be called; "" is any
    thinking: bool = False
    usage: bool = False  # the stream shall end with its usage
    schema: Mapping[str, Any] | None = None  # what the text must be JSON of
    extra: Mapping[str, Any] = field(default_factory=dict)  # what one wire alone knows

    @property
    def calls(self) -> int:
        """How many turns of the model have called tools so far."""
        return sum(turn.role == "assistant" and bool(turn.calls) for turn in self.turns)


def count(value: Any) -> int:
    """How many tokens a part of a request counts."""
    return sum(map(len, _texts(value))) // CHARACTERS


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
    """The objects of a list; a plain text is one part of text."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def as_table(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object of the body; none is an empty one."""
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise InvalidRequest(f"{name}: Input should be an object", name, "invalid_type")
    return value or {}


def joined(parts: list[dict[str, Any]]) -> str:
    """The words of those parts that have any."""
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def whole(body: Mapping[str, Any], *names: str) -> int | None:
    """The first of these that is a whole number."""
    return next((body[name] for name in names if isinstance(body.get(name), int)), None)
