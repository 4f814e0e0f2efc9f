"""Events as JSON and back, exactly: what a journal, a log line or another process holds of them.

One event is one flat object, `{"v": 1, "name": "attempt_failed", "at": …, …}`, with every field of the
event; a decision carries its own `name`. How a field is written follows from its type alone, so a new
event or field needs nothing here. Reading passes over fields it does not know and fills in the defaults
of fields that are not there: a journal outlives the version that wrote it.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from rung.core.domain import events as ev
from rung.core.domain import failures, request
from rung.core.domain.errors import ConfigError

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

# What the modules of events import for type checking only.
_NAMES: Final = {"Failure": failures.Failure, "Request": request.Request, "Mapping": Mapping}


def to_json(event: ev.Event) -> Json:
    """The event as a JSON object: schema `event`."""
    return {"v": ev.VERSION, **_tagged(event)}


def from_json(table: Mapping[str, Any]) -> ev.Event:
    """The event a JSON object holds; a version, a name or a value that cannot be is a ConfigError."""
    if table.get("v") != ev.VERSION:
        raise ConfigError("v", table.get("v"), str(ev.VERSION))
    event: ev.Event = _untagged(table, EVENTS)
    return event


def record_of(value: Any) -> Json:
    """A record of ours (evidence, a request) as a JSON object."""
    return _record(value)


def record_from(cls: type[T], table: Mapping[str, Any]) -> T:
    """The record of this class that a JSON object holds."""
    record: T = _made(cls, table)
    return record


def name_of(cls: type) -> str:
    """The name of an event or decision in JSON: `AttemptFailed` is `attempt_failed`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


EVENTS: Final[dict[str, type]] = {name_of(cls): cls for cls in get_args(ev.Event)}
DECISIONS: Final[dict[str, type]] = {name_of(cls): cls for cls in get_args(ev.Decision)}
_NAMED: Final[Mapping[type, str]] = {cls: name for name, cls in (EVENTS | DECISIONS).items()}


class _Field(NamedTuple):
    name: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    required: bool


class _FieldCodec(NamedTuple):
    """How values of one type are written and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@cache
def _fields(cls: Any) -> tuple[_Field, ...]:
    if is_dataclass(cls):
        given = [f for f in fields(cls) if f.init]
        names = [f.name for f in given]
        optional = {f.name for f in given if f.default is not MISSING or f.default_factory is not MISSING}
    else:
        names, optional = cls._fields, set(cls._field_defaults)
    hints = get_type_hints(cls, localns=_NAMES)
    return tuple(_Field(name, *_way(hints[name]), name not in optional) for name in names)


def _record(value: Any) -> Json:
    cls: Any = type(value)
    return _writer(cls)(value)


@cache
def _writer(cls: Any) -> Callable[[Any], Json]:
    """How records of a class are written: all fields at once, then those again that JSON has no form for."""
    names = tuple(field.name for field in _fields(cls))
    changed = [(field.name, field.write) for field in _fields(cls) if field.write is not _same]

    def write(value: Any) -> Json:
        values = value if isinstance(value, tuple) else [getattr(value, name) for name in names]
        table = dict(zip(names, values, strict=True))
        for name, way in changed:
            table[name] = way(table[name])
        return table

    return write


def _made(cls: Any, table: Mapping[str, Any]) -> Any:
    values: Json = {}
    for field in _fields(cls):
        if field.name in table:
            try:
                values[field.name] = field.read(table[field.name])
            except ConfigError as error:
                raise error.under(field.name) from None
            except (ValueError, TypeError, AttributeError) as error:
                raise ConfigError(field.name, table[field.name], f"a value that can be read ({error})") from None
        elif field.required:
            raise ConfigError(field.name, None, f"a value: {name_of(cls)} needs it")
    return cls(**values)


def _tagged(value: Any) -> Json:
    return {"name": _NAMED[type(value)], **_record(value)}


def _untagged(table: Mapping[str, Any], classes: Mapping[str, type]) -> Any:
    cls = classes.get(str(table.get("name")))
    if cls is None:
        raise ConfigError("name", table.get("name"), "one of " + ", ".join(classes))
    return _made(cls, table)


def _way(hint: Any) -> _FieldCodec:
    if hint is float:
        return _FieldCodec(_write_float, _read_any)
    if hint in (Any, Mapping[str, Any]):
        return _FieldCodec(_write_any, _read_any)
    if hint in (str, int, bool):
        return _FieldCodec(_same, _same)
    origin = get_origin(hint)
    if origin is not None:
        return _WAYS[origin](get_args(hint))
    if issubclass(hint, Enum):
        return _FieldCodec(lambda choice: choice.value, hint)
    return _FieldCodec(_record, lambda table: _made(hint, table))


def _way_of_union(hints: Sequence[Any]) -> _FieldCodec:
    if set(hints) == set(DECISIONS.values()):
        return _FieldCodec(_tagged, lambda table: _untagged(table, DECISIONS))
    (hint,) = (hint for hint in hints if hint is not NoneType)
    write, read = _way(hint)
    return _FieldCodec(lambda value: None if value is None else write(value), lambda v: None if v is None else read(v))


def _way_of_tuple(hints: Sequence[Any]) -> _FieldCodec:
    if hints[-1] is Ellipsis:
        item = _way(hints[0])
        return _FieldCodec(
            lambda values: [item.write(v) for v in values], lambda values: tuple(item.read(v) for v in values)
        )
    ways = [_way(hint) for hint in hints]
    return _FieldCodec(
        lambda values: [way.write(v) for way, v in zip(ways, values, strict=True)],
        lambda values: tuple(way.read(v) for way, v in zip(ways, values, strict=True)),
    )


def _way_of_mapping(hints: Sequence[Any]) -> _FieldCodec:
    item = _way(hints[1])
    return _FieldCodec(lambda table: _each(item.write, table), lambda table: _each(item.read, table))


_WAYS: Final[Mapping[Any, Callable[[Sequence[Any]], _FieldCodec]]] = {
    Union: _way_of_union,
    UnionType: _way_of_union,
    tuple: _way_of_tuple,
    Mapping: _way_of_mapping,
}


def _same(value: Any) -> Any:
    return value


def _each(way: Callable[[Any], Any], table: Mapping[str, Any]) -> Json:
    return {key: way(value) for key, value in table.items()}


# Parameters and messages are the user's: what JSON has no form for is marked by a "$" key, so that it comes
# back as it was. An object of a class unknown here stays as its repr; a request's digest sees no difference.


def _write_float(value: Any) -> Any:
    return value if type(value) is float and isfinite(value) else _write_any(value)


def _write_any(value: Any) -> Any:
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, list):
        return [_write_any(item) for item in value]
    for mark, (cls, write, _) in _MARKS.items():
        if isinstance(value, cls):
            return {mark: write(value)}
    items = getattr(value, "items", None)
    return _write_table(dict(items())) if callable(items) else repr(value)


def _write_table(table: Mapping[Any, Any]) -> Json:
    if all(isinstance(key, str) and not key.startswith("$") for key in table):
        return _each(_write_any, table)
    return {"$items": [[_write_any(key), _write_any(value)] for key, value in table.items()]}


def _read_any(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_any(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$items" in value:
        return {_read_any(key): _read_any(item) for key, item in value["$items"]}
    for mark, (_, _, read) in _MARKS.items():
        if mark in value:
            return read(value[mark])
    return _each(_read_any, value)


_MARKS: Final[Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "$float": (float, repr, float),
    "$tuple": (tuple, lambda items: [_write_any(item) for item in items], lambda items: tuple(_read_any(items))),
    "$bytes": (bytes, lambda data: b2a_base64(data, newline=False).decode(), a2b_base64),
}
