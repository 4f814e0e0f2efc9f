"""What an attempt is given. Immutable: a rung makes a new one, and proves that it differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import NoneType
from typing import Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import short_hash
from rung.core.domain.frozen_dict import FrozenEmptyDict

NO_PARAMS: Final[Mapping[str, Any]] = FrozenEmptyDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: a prompt or messages, the model and agent it goes to, limits and parameters.

    `recovery` is the text a rung added, by itself; it is already part of `prompt` or `messages`.
    `idempotent` says that running it again after a side effect does no harm (default: it might).
    """

    prompt: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    model: str = ""
    agent: str = ""
    max_tokens: int | None = None
    max_turns: int | None = None
    params: Mapping[str, Any] = field(default_factory=lambda: NO_PARAMS)
    recovery: str = ""
    idempotent: bool = False

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_turns"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(name, value, "1 or more, or None for the model's own limit")
        object.__setattr__(self, "messages", tuple(self.messages))

    def replace(self, **changes: Any) -> Request:
        """The same request with these fields changed."""
        return replace(self, **changes)

    def digest(self) -> str:
        """Sixteen hex digits, equal exactly when two requests ask for the same thing."""
        asked = [_plain(value) for value in _asked(self)]
        return short_hash(_encoded(dict(zip(_ASKED, asked, strict=True))), 8)

    def size(self) -> int:
        """Characters of prompt and messages: what compaction must make smaller.

        A request whose body is kept elsewhere says in `params["room"]` how much room it takes.
        """
        room = self.params.get("room")
        if isinstance(room, int):
            return room
        return len(self.prompt) + len(json.dumps(_plain(self.messages)))

    def changed(self, other: Request) -> tuple[str, ...]:
        """Names of the fields in which the other request differs."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name))


_ASKED: Final = tuple(sorted(f.name for f in fields(Request) if f.name != "idempotent"))
_asked: Final = attrgetter(*_ASKED)
_encoded: Final = json.JSONEncoder(sort_keys=True).encode  # made once: it is asked for every request
_PLAIN: Final = (str, int, float, NoneType)


def _plain(value: Any) -> Any:
    """The value in JSON's own types; what JSON has no type for is known by its repr."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"\0{key!r}": _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return repr(value)
