"""What a client says, in the words of no wire: turns, tools and settings. Each client module puts it into its own."""

from __future__ import annotations

from typing import Any, NamedTuple


class Image(NamedTuple):
    """An image: base64 data, or a URL."""

    data: str = ""
    url: str = ""


class Pdf(NamedTuple):
    """A document with its base64 data."""

    data: str


Said = str | Image | Pdf


class Call(NamedTuple):
    """A call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class Result(NamedTuple):
    """Result of a call."""

    call: str
    name: str
    said: tuple[Said, ...]
    is_error: bool = False


class UserTurn(NamedTuple):
    """The user says something."""

    said: tuple[Said, ...]


class ModelTurn(NamedTuple):
    """The model says something and calls tools."""

    text: str = ""
    calls: tuple[Call, ...] = ()


class ResultTurn(NamedTuple):
    """The client gives the results of all calls."""

    results: tuple[Result, ...]


TalkTurn = UserTurn | ModelTurn | ResultTurn


class Talk(NamedTuple):
    """A request."""

    turns: tuple[TalkTurn, ...]
    system: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()  # names and schemas
    schema: dict[str, Any] | None = None  # of the answer
    stop: tuple[str, ...] = ()
    max_tokens: int = 4_000
    model: str = "small"


class Heard(NamedTuple):
    """An answer as the SDK gives it. `own` is what the SDK takes back as the model's turn."""

    text: str
    calls: tuple[Call, ...]
    stop: str  # end, calls, refusal, limit
    own: Any
    refusal: str = ""
