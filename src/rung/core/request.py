"""What an attempt is given. Immutable: a rung makes a new one, and proves that it differs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_PARAMS: Final[Mapping[str, Any]] = MappingProxyType({})


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
        if not isinstance(self.messages, tuple):
            object.__setattr__(self, "messages", tuple(self.messages))

    def but(self, **changes: Any) -> Request:
        """The same request with these fields changed."""
        return replace(self, **changes)

    def digest(self) -> str:
        """Sixteen hex digits, equal exactly when two requests ask for the same thing."""
        asked = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "idempotent"}
        text = json.dumps(asked, sort_keys=True, default=_plain, ensure_ascii=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def size(self) -> int:
        """Characters of prompt and messages: what compaction must make smaller."""
        return len(self.prompt) + len(json.dumps(self.messages, default=_plain))

    def changed(self, other: Request) -> tuple[str, ...]:
        """Names of the fields in which the other request differs."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name))


def _plain(value: object) -> object:
    items = getattr(value, "items", None)
    return dict(items()) if callable(items) else repr(value)
