"""Lossless JSON codec of events: the format of journals, log lines and messages between processes.

One event is one flat object, `{"v": 1, "name": "attempt_failed", "at": …, …}`, with every field of the event. A
decision carries its own `name`. The encoding of a field follows from its type, so a new event or field needs no code
here. Reading ignores unknown fields and fills in defaults for missing ones: a journal outlives the version that wrote
it.
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

# Names that the event modules import for type checking only; get_type_hints needs them.
_TYPE_CHECKING_IMPORTS: Final = {"Failure": failures.Failure, "Request": request.Request, "Mapping": Mapping}


def to_json(event: ev.Event) -> Json:
    """Return the event as a JSON object: schema `event`."""
    return {"v": ev.VERSION, **_write_tagged(event)}


def from_json(table: Mapping[str, Any]) -> ev.Event:
    """Return the event of a JSON object; raise ConfigError for an unknown version or name, or an invalid value."""
    if table.get("v") != ev.VERSION:
        raise ConfigError("v", table.get("v"), str(ev.VERSION))
    event: ev.Event = _read_tagged(table, EVENTS)
    return event


def record_to_json(value: Any) -> Json:
    """Return a record (evidence, a request) as a JSON object."""
    return _write_record(value)


def record_from_json(cls: type[T], table: Mapping[str, Any]) -> T:
    """Return the record of this class from a JSON object."""
    record: T = _read_record(cls, table)
    return record


def json_name(cls: type) -> str:
    """Return the name of an event or decision in JSON: `AttemptFailed` is `attempt_failed`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


EVENTS: Final[dict[str, type]] = {json_name(cls): cls for cls in get_args(ev.Event)}
DECISIONS: Final[dict[str, type]] = {json_name(cls): cls for cls in get_args(ev.Decision)}
_NAMES_BY_CLASS: Final[Mapping[type, str]] = {cls: name for name, cls in (EVENTS | DECISIONS).items()}


class _Field(NamedTuple):
    name: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    required: bool


class _FieldCodec(NamedTuple):
    """Functions that write and read values of one type."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@cache
def _fields(cls: Any) -> tuple[_Field, ...]:
    if is_dataclass(cls):
        parameters = [f for f in fields(cls) if f.init]
        names = [f.name for f in parameters]
        optional = {f.name for f in parameters if f.default is not MISSING or f.default_factory is not MISSING}
    else:
        names, optional = cls._fields, set(cls._field_defaults)
    hints = get_type_hints(cls, localns=_TYPE_CHECKING_IMPORTS)
    return tuple(_Field(name, *_codec_for(hints[name]), name not in optional) for name in names)


def _write_record(value: Any) -> Json:
    cls: Any = type(value)
    return _writer(cls)(value)


@cache
def _writer(cls: Any) -> Callable[[Any], Json]:
    """Return the function that writes records of a class: copy all fields, then convert those that need it."""
    names = tuple(field.name for field in _fields(cls))
    converted = [(field.name, field.write) for field in _fields(cls) if field.write is not _identity]

    def write(value: Any) -> Json:
        values = value if isinstance(value, tuple) else [getattr(value, name) for name in names]
        table = dict(zip(names, values, strict=True))
        for name, convert in converted:
            table[name] = convert(table[name])
        return table

    return write


def _read_record(cls: Any, table: Mapping[str, Any]) -> Any:
    values: Json = {}
    for field in _fields(cls):
        if field.name in table:
            try:
                values[field.name] = field.read(table[field.name])
            except ConfigError as error:
                raise error.with_prefix(field.name) from None
            except (ValueError, TypeError, AttributeError) as error:
                raise ConfigError(field.name, table[field.name], f"a readable value ({error})") from None
        elif field.required:
            raise ConfigError(field.name, None, f"a value: {json_name(cls)} requires it")
    return cls(**values)


def _write_tagged(value: Any) -> Json:
    return {"name": _NAMES_BY_CLASS[type(value)], **_write_record(value)}


def _read_tagged(table: Mapping[str, Any], classes: Mapping[str, type]) -> Any:
    cls = classes.get(str(table.get("name")))
    if cls is None:
        raise ConfigError("name", table.get("name"), "one of " + ", ".join(classes))
    return _read_record(cls, table)


def _codec_for(hint: Any) -> _FieldCodec:
    if hint is float:
        return _FieldCodec(_write_float, _read_any)
    if hint in (Any, Mapping[str, Any]):
        return _FieldCodec(_write_any, _read_any)
    if hint in (str, int, bool):
        return _FieldCodec(_identity, _identity)
    origin = get_origin(hint)
    if origin is not None:
        return _GENERIC_CODECS[origin](get_args(hint))
    if issubclass(hint, Enum):
        return _FieldCodec(lambda choice: choice.value, hint)
    return _FieldCodec(_write_record, lambda table: _read_record(hint, table))


def _union_codec(hints: Sequence[Any]) -> _FieldCodec:
    if set(hints) == set(DECISIONS.values()):
        return _FieldCodec(_write_tagged, lambda table: _read_tagged(table, DECISIONS))
    (hint,) = (hint for hint in hints if hint is not NoneType)
    write, read = _codec_for(hint)
    return _FieldCodec(lambda value: None if value is None else write(value), lambda v: None if v is None else read(v))


def _tuple_codec(hints: Sequence[Any]) -> _FieldCodec:
    if hints[-1] is Ellipsis:
        item = _codec_for(hints[0])
        return _FieldCodec(
            lambda values: [item.write(v) for v in values], lambda values: tuple(item.read(v) for v in values)
        )
    codecs = [_codec_for(hint) for hint in hints]
    return _FieldCodec(
        lambda values: [codec.write(v) for codec, v in zip(codecs, values, strict=True)],
        lambda values: tuple(codec.read(v) for codec, v in zip(codecs, values, strict=True)),
    )


def _mapping_codec(hints: Sequence[Any]) -> _FieldCodec:
    item = _codec_for(hints[1])
    return _FieldCodec(lambda table: _map_values(item.write, table), lambda table: _map_values(item.read, table))


_GENERIC_CODECS: Final[Mapping[Any, Callable[[Sequence[Any]], _FieldCodec]]] = {
    Union: _union_codec,
    UnionType: _union_codec,
    tuple: _tuple_codec,
    Sequence: lambda hints: _tuple_codec((*hints, ...)),
    Mapping: _mapping_codec,
}


def _identity(value: Any) -> Any:
    return value


def _map_values(convert: Callable[[Any], Any], table: Mapping[str, Any]) -> Json:
    return {key: convert(value) for key, value in table.items()}


# Parameters and messages hold any user data. A value without a JSON type is tagged by a "$" key, so that it is read
# back unchanged. An object of any other class is stored as its repr; a request's digest does the same.


def _write_float(value: Any) -> Any:
    return value if type(value) is float and isfinite(value) else _write_any(value)


def _write_any(value: Any) -> Any:
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, list):
        return [_write_any(item) for item in value]
    for tag, (cls, write, _) in _TAGS.items():
        if isinstance(value, cls):
            return {tag: write(value)}
    items = getattr(value, "items", None)
    return _write_table(dict(items())) if callable(items) else repr(value)


def _write_table(table: Mapping[Any, Any]) -> Json:
    if all(isinstance(key, str) and not key.startswith("$") for key in table):
        return _map_values(_write_any, table)
    return {"$items": [[_write_any(key), _write_any(value)] for key, value in table.items()]}


def _read_any(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_any(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$items" in value:
        return {_read_any(key): _read_any(item) for key, item in value["$items"]}
    for tag, (_, _, read) in _TAGS.items():
        if tag in value:
            return read(value[tag])
    return _map_values(_read_any, value)


_TAGS: Final[Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "$float": (float, repr, float),
    "$tuple": (tuple, lambda items: [_write_any(item) for item in items], lambda items: tuple(_read_any(items))),
    "$bytes": (bytes, lambda data: b2a_base64(data, newline=False).decode(), a2b_base64),
}
