"""Request: the input of an attempt. Immutable: a rung builds a new one, and its digest must differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypedDict

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import short_hash
from rung.core.domain.frozen_dict import FrozenDict

if TYPE_CHECKING:
    from typing import Unpack

NO_PARAMS: Final[Mapping[str, Any]] = FrozenDict()


class RequestFields(TypedDict, total=False):
    """Fields of a request, as arguments of `Request.replace`."""

    prompt: str
    messages: Sequence[Mapping[str, Any]]
    model: str
    agent: str
    max_tokens: int | None
    max_turns: int | None
    params: Mapping[str, Any]
    recovery: str
    idempotent: bool
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Input of an attempt. Immutable: a recovery makes a new one for each change.

    Attributes:
        prompt: Prompt. A recovery appends the error, or another instruction, to it. Default: empty.
        messages: Messages of a conversation, as your client takes them; kept as a tuple. Default: none.
        model: Name of the model. A fallback changes it. Default: empty, the attempt's own.
        agent: Name of the agent. A handover changes it. Default: empty, the first one.
        max_tokens: Largest output, in tokens; None: the model's own limit. Default: None.
        max_turns: Most turns of the agent; None: the agent's own limit. Default: None.
        params: Any other parameters for your attempt. Default: none.
        recovery: Text that a rung added; it is already part of `prompt` or `messages`. Default: empty.
        idempotent: Whether the request may be repeated after a side effect. Default: False.
        task: Name of the kind of task, by which reports and the history of durations group. Default: empty, by the prompt.

    Raises:
        ConfigError: A limit is below 1.

    Example:
        >>> import rung
        >>> request = rung.Request(prompt="Fix the test", model="small")
        >>> request.replace(model="large").model
        'large'
    """

    prompt: str = ""
    messages: Sequence[Mapping[str, Any]] = ()
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

    def replace(self, **changes: Unpack[RequestFields]) -> Request:
        """Return a copy with these fields changed.

        Args:
            **changes: Fields and their new values.
        """
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
        """Return the names of the fields in which the other request differs.

        Args:
            other: The other request.
        """
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
