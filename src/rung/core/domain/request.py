"""Request: the input of an attempt. Immutable: a rung builds a new one, and its digest must differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import NoneType
from typing import Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import short_hash
from rung.core.domain.frozen_dict import FrozenDict

NO_PARAMS: Final[Mapping[str, Any]] = FrozenDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Input of an attempt: a prompt or messages, the target model and agent, limits and parameters.

    `recovery` is the text that a rung added; it is already part of `prompt` or `messages`. `idempotent` says that the
    request may be repeated after a side effect. `task` names the kind of task, where the prompt does not show it: reports
    and the history of durations group by it.
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
    task: str = ""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_turns"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(name, value, "1 or more, or None for the model's own limit")
        object.__setattr__(self, "messages", tuple(self.messages))

    def replace(self, **changes: Any) -> Request:
        """Return a copy with these fields changed."""
        return replace(self, **changes)

    def digest(self) -> str:
        """Return sixteen hex digits, equal if and only if two requests have the same content."""
        values = [_to_json_types(value) for value in _digest_values(self)]
        return short_hash(_encode_json(dict(zip(_DIGEST_FIELDS, values, strict=True))), 8)

    def size(self) -> int:
        """Return the number of characters of prompt and messages, which compaction must reduce.

        A request whose body is stored elsewhere has its size in `params["room"]`.
        """
        stored_size = self.params.get("room")
        if isinstance(stored_size, int):
            return stored_size
        return len(self.prompt) + len(json.dumps(_to_json_types(self.messages)))

    def changed(self, other: Request) -> tuple[str, ...]:
        """Return the names of the fields in which the other request differs."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name))


def json_digest(document: Any) -> str:
    """Return sixteen hex digits, equal for the same JSON however it is written: a change is proved by meaning, not bytes."""
    return short_hash(_encode_json(_to_json_types(document)), 8)


_DIGEST_FIELDS: Final = tuple(sorted(f.name for f in fields(Request) if f.name not in ("idempotent", "task")))
_digest_values: Final = attrgetter(*_DIGEST_FIELDS)
_encode_json: Final = json.JSONEncoder(sort_keys=True).encode  # created once: used for every request
_JSON_TYPES: Final = (str, int, float, NoneType)


def _to_json_types(value: Any) -> Any:
    """Return the value in JSON types; a value without a JSON type becomes its repr."""
    if isinstance(value, _JSON_TYPES):
        return value
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"\0{key!r}": _to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_types(item) for item in value]
    return repr(value)
