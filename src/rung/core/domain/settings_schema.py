"""Settings declared once: a TOML table, a JSON object or keyword arguments become a checked, frozen dataclass.

A settings class declares each key with its type, its default and one line of documentation:

    @settings
    class Limits:
        body: int = setting(COUNT, "Largest request body, in bytes.", default=64 * 1024 * 1024)

`read_settings(Limits, table, "gateway.limits")` reads a table. The constructor runs the same checks on values from
Python. `declared(Limits)` lists the keys for the reference pages. Every error is a ConfigError with the full key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import GROUPS, Kind

T = TypeVar("T")
REQUIRED: Final[Any] = object()  # in place of a default


class Type(NamedTuple):
    """A type of setting: the allowed values in words, a predicate, and how a table's value is converted.

    `parse` gets the value and its full key. A type without a predicate checks in `parse`, and does not check values
    that are passed to a constructor in Python.
    """

    allowed: str
    fits: Callable[[Any], bool] = lambda _: True
    parse: Callable[[Any, str], Any] = lambda value, _: value

    def read(self, value: Any, key: str) -> Any:
        """The value for the field; a ConfigError when it does not fit."""
        if not self.fits(value):
            raise ConfigError(key, value, self.allowed)
        return self.parse(value, key)


class Setting(NamedTuple):
    """A declared key of a settings class."""

    name: str
    type: Type
    default: Any
    doc: str


def setting(type: Type, doc: str, *, default: Any = REQUIRED, default_factory: Any = REQUIRED) -> Any:  # noqa: A002
    """Declare one key of a settings class."""
    metadata = {"setting": type, "doc": doc}
    if default_factory is not REQUIRED:
        return field(default_factory=default_factory, metadata=metadata)
    return field(metadata=metadata) if default is REQUIRED else field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, field))
def settings(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose constructor checks every declared key, then runs `__post_init__`."""
    own = cls.__dict__.get("__post_init__")

    def check(self: Any) -> None:
        for name, kind, default, _ in declared(made):
            value = getattr(self, name)
            if value is not default and not kind.fits(value):
                raise ConfigError(name, value, kind.allowed)
        if own is not None:
            own(self)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    return made


@cache
def _declared(cls: Any) -> tuple[Setting, ...]:
    return tuple(
        Setting(each.name, each.metadata["setting"], _default(each), each.metadata["doc"])
        for each in fields(cls)
        if "setting" in each.metadata
    )


def declared(cls: Any) -> tuple[Setting, ...]:
    """The declared keys of a settings class, in their order."""
    return _declared(cls)


def _default(each: Any) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return REQUIRED if each.default is MISSING else each.default


def read_values(cls: Any, table: object, where: str, *others: str) -> dict[str, Any]:
    """The given keys of a table, checked and converted; `others` are keys that the caller reads by itself."""
    source = read_table(table, where)
    known = {each.name: each for each in declared(cls)}
    check_keys(source, (*known, *others), where)
    return {key: known[key].type.read(value, f"{where}.{key}") for key, value in source.items() if key in known}


def read_settings(cls: type[T], table: object, where: str, **more: Any) -> T:
    """A settings class from a table; `more` holds fields that the caller has read by itself."""
    values = read_values(cls, table, where) | more
    for each in declared(cls):
        if each.default is REQUIRED and each.name not in values:
            raise ConfigError(f"{where}.{each.name}", None, each.type.allowed)
    try:
        return cls(**values)
    except ConfigError as error:
        raise error.under(where) from None


def read_rows(cls: type[T], rows: object, where: str) -> tuple[T, ...]:
    """A settings class from each of a list of tables; no two have the same `id`."""
    if not isinstance(rows, list | tuple):
        raise ConfigError(where, rows, f"a list of tables: [[{where}]]")
    read = tuple(read_settings(cls, row, f"{where}[{number}]") for number, row in enumerate(rows))
    ids = [getattr(row, "id", number) for number, row in enumerate(read)]
    for number, name in enumerate(ids):
        if name in ids[:number]:
            raise ConfigError(f"{where}[{number}].id", name, f"an id that no other {where} has")
    return read


def read_table(value: object, where: str) -> dict[str, Any]:
    """A copy of a table."""
    if isinstance(value, Mapping):
        return dict(value)
    raise ConfigError(where, value, "a table")


def read_list(value: object, where: str) -> list[Any]:
    """A copy of a list."""
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise ConfigError(where, value, "a list")
    return list(value)


def check_keys(table: Mapping[str, Any], known: Iterable[str], where: str = "") -> None:
    """Reject a key that is not known; the error suggests the nearest ones."""
    known = list(known)
    for key, value in table.items():
        if key not in known:
            path = f"{where}.{key}" if where else str(key)
            raise ConfigError(path, value, f"one of the keys {', '.join(known)}{suggestion(key, known)}")


def suggestion(name: object, names: Iterable[str]) -> str:
    """The end of an error message: which of these names may have been meant."""
    from difflib import get_close_matches

    close = get_close_matches(str(name), list(names), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def whole(least: int = 0, most: int | None = None) -> Type:
    """Whole numbers from `least` to `most`."""
    words = f"{least} or more" if most is None else f"{least} to {most}"
    return Type(f"a whole number, {words}", lambda value: is_whole(value, least) and (most is None or value <= most))


def one_of(choices: Iterable[str]) -> Type:
    """One of these texts; members of an enumeration are read as such."""
    named = {str(choice): choice for choice in choices}
    return Type(
        "one of " + ", ".join(filter(None, named)),
        lambda value: isinstance(value, str) and value in named,
        lambda value, _: named[value],
    )


def optional(type: Type) -> Type:  # noqa: A002
    """The type, or None."""
    return Type(
        f"{type.allowed}, or left out",
        lambda value: value is None or type.fits(value),
        lambda value, key: None if value is None else type.parse(value, key),
    )


def list_of(type: Type) -> Type:  # noqa: A002
    """A list, read item by item into a tuple."""
    return Type(
        f"a list, each {type.allowed}",
        parse=lambda value, key: tuple(
            type.read(item, f"{key}[{number}]") for number, item in enumerate(read_list(value, key))
        ),
    )


def table_of(cls: type[Any]) -> Type:
    """A table, read as this settings class."""
    return Type("a table", parse=lambda value, key: value if isinstance(value, cls) else read_settings(cls, value, key))


def rows_of(cls: type[Any]) -> Type:
    """A list of tables, each read as this settings class."""
    return Type("a list of tables", parse=lambda value, key: read_rows(cls, value, key))


def read_kinds(name: object, where: str) -> tuple[Kind, ...]:
    """The kind of this name, or all kinds of the group of this name."""
    if isinstance(name, str) and name in GROUPS:
        return GROUPS[name]
    if isinstance(name, str) and name in tuple(Kind):
        return (Kind(name),)
    allowed = f"a kind ({', '.join(Kind)}) or a group ({', '.join(GROUPS)})"
    raise ConfigError(f"{where}.{name}", name, allowed + suggestion(name, (*GROUPS, *Kind)))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple | frozenset) and all(_is_text(item) for item in value)


def _is_command(value: object) -> bool:
    """A list of texts with the program first; an empty list means no command."""
    return (
        isinstance(value, list | tuple)
        and all(isinstance(item, str) for item in value)
        and value[:1] not in ([""], ("",))
    )


def _tuple(value: Any, _: str) -> tuple[Any, ...]:
    return tuple(value)


TEXT: Final = Type("a text", _is_text)
ANY_TEXT: Final = Type("a text", lambda value: isinstance(value, str))
TEXTS: Final = Type("a list of texts", _is_texts, _tuple)
NAMES: Final = Type("a list of names", _is_texts, lambda value, _: frozenset(value))
COMMAND: Final = Type('a list of texts, the program first: ["agent", "--flag"]', _is_command, _tuple)
FLAG: Final = Type("true or false", lambda value: isinstance(value, bool))
WHOLE: Final = whole()
COUNT: Final = whole(1)
NUMBER: Final = Type("a number, 0 or more", is_number)
SECONDS: Final = Type("seconds, 0 or more", is_number)
POSITIVE_SECONDS: Final = Type("seconds, more than 0", lambda value: is_number(value) and value != 0)
DOLLARS: Final = Type("US dollars, 0 or more", is_number)
KINDS: Final = Type(
    "a list of kinds or groups",
    parse=lambda value, key: frozenset(kind for name in read_list(value, key) for kind in read_kinds(name, key)),
)
