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
from inspect import cleandoc
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.failures import GROUPS, Kind

T = TypeVar("T")
REQUIRED: Final[Any] = object()  # in place of a default


class Type(NamedTuple):
    """Type of a setting: a description of the allowed values, a predicate, and a conversion of a table's value.

    `parse` gets the value and its full key. A type without a predicate checks in `parse`, and does not check values
    that are passed to a constructor in Python.
    """

    allowed: str
    is_valid: Callable[[Any], bool] = lambda _: True
    parse: Callable[[Any, str], Any] = lambda value, _: value

    def read(self, value: Any, key: str) -> Any:
        """Return the value for the field; raise ConfigError if it is invalid."""
        if not self.is_valid(value):
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
    """Make a class a frozen dataclass whose constructor checks every declared key, then runs `__post_init__`.

    The docstring of the class gets a section with the declared keys.
    """
    class_check = cls.__dict__.get("__post_init__")

    def check(self: Any) -> None:
        for name, setting_type, default, _ in declared_settings(frozen):
            value = getattr(self, name)
            if value is not default and not setting_type.is_valid(value):
                raise ConfigError(name, value, setting_type.allowed)
        if class_check is not None:
            class_check(self)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    frozen = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    declared = declared_settings(frozen)
    text = cleandoc(cls.__doc__ or "")
    head = text if "\nAttributes:\n" in text else f"{text}\n\nAttributes:"
    frozen.__doc__ = "\n".join([head, *map(_described, declared)])
    return frozen


def _described(setting: Setting) -> str:
    """Return the line of a declared key in the docstring of its class."""
    default = setting.default
    if isinstance(default, frozenset):
        default = ", ".join(sorted(map(str, default))) or "none"
    if default is REQUIRED or "Default" in setting.doc:
        return f"    {setting.name}: {setting.doc}"
    default = {"": "empty", (): "none"}.get(default, default) if isinstance(default, str | tuple) else default
    return f"    {setting.name}: {setting.doc} Default: {default}."


@cache
def _declared(cls: Any) -> tuple[Setting, ...]:
    return tuple(
        Setting(each.name, each.metadata["setting"], _default(each), each.metadata["doc"])
        for each in fields(cls)
        if "setting" in each.metadata
    )


def declared_settings(cls: Any) -> tuple[Setting, ...]:
    """Return the declared keys of a settings class in order."""
    return _declared(cls)


def _default(each: Any) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return REQUIRED if each.default is MISSING else each.default


def read_values(cls: Any, table: object, where: str, *others: str) -> dict[str, Any]:
    """Return the keys that a table has, checked and converted; `others` are keys that the caller reads itself."""
    source = read_table(table, where)
    declared = {each.name: each for each in declared_settings(cls)}
    check_keys(source, (*declared, *others), where)
    return {key: declared[key].type.read(value, f"{where}.{key}") for key, value in source.items() if key in declared}


def read_settings(cls: type[T], table: object, where: str, **more: Any) -> T:
    """Return a settings object from a table; `more` holds fields that the caller has read itself."""
    values = read_values(cls, table, where) | more
    for each in declared_settings(cls):
        if each.default is REQUIRED and each.name not in values:
            raise ConfigError(f"{where}.{each.name}", None, each.type.allowed)
    try:
        return cls(**values)
    except ConfigError as error:
        raise error.with_prefix(where) from None


def read_rows(cls: type[T], rows: object, where: str) -> tuple[T, ...]:
    """Return a settings object for each of a list of tables; an `id` may occur once."""
    if not isinstance(rows, list | tuple):
        raise ConfigError(where, rows, f"a list of tables: [[{where}]]")
    read = tuple(read_settings(cls, row, f"{where}[{number}]") for number, row in enumerate(rows))
    ids = [getattr(row, "id", number) for number, row in enumerate(read)]
    for number, name in enumerate(ids):
        if name in ids[:number]:
            raise ConfigError(f"{where}[{number}].id", name, f"an id that no other of {where} has")
    return read


def read_table(value: object, where: str) -> dict[str, Any]:
    """Return a copy of a table; raise ConfigError for any other value."""
    if isinstance(value, Mapping):
        return dict(value)
    raise ConfigError(where, value, "a table")


def read_list(value: object, where: str) -> list[Any]:
    """Return a copy of a list; raise ConfigError for any other value."""
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise ConfigError(where, value, "a list")
    return list(value)


_MIN_NEARNESS: Final = 0.6  # of two names, by the share of equal characters
_MAX_NEARNESS_GAP: Final = 0.15  # to the nearest name


def check_keys(table: Mapping[str, Any], allowed: Iterable[str], where: str = "") -> None:
    """Raise ConfigError for an unknown key; the message suggests the nearest ones."""
    allowed = list(allowed)
    for key, value in table.items():
        if key not in allowed:
            path = f"{where}.{key}" if where else str(key)
            raise ConfigError(path, value, f"one of the keys {', '.join(allowed)}{suggest_names(key, allowed)}")


def suggest_names(name: object, names: Iterable[str]) -> str:
    """Return the end of an error message that suggests the nearest names; empty if none is near.

    The dashes that all options begin with say nothing, and a name that is much less near than the nearest one is noise.
    """
    from difflib import SequenceMatcher

    given = str(name).lstrip("-")
    ratios = {each: SequenceMatcher(None, each.lstrip("-"), given).ratio() for each in names}
    least = max(_MIN_NEARNESS, max(ratios.values(), default=0.0) - _MAX_NEARNESS_GAP)
    close = sorted((each for each in ratios if ratios[each] >= least), key=lambda each: -ratios[each])[:3]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def whole(minimum: int = 0, maximum: int | None = None) -> Type:
    """Return the type of whole numbers from `minimum` to `maximum`."""
    bounds = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    return Type(
        f"a whole number, {bounds}", lambda value: is_whole(value, minimum) and (maximum is None or value <= maximum)
    )


def one_of(choices: Iterable[str]) -> Type:
    """Return the type of these texts; enumeration members are read as such."""
    named = {str(choice): choice for choice in choices}
    return Type(
        "one of " + ", ".join(filter(None, named)),
        lambda value: isinstance(value, str) and value in named,
        lambda value, _: named[value],
    )


def optional(type: Type) -> Type:  # noqa: A002
    """Return the type that also allows None."""
    return Type(
        f"{type.allowed}, or left out",
        lambda value: value is None or type.is_valid(value),
        lambda value, key: None if value is None else type.parse(value, key),
    )


def list_of(type: Type) -> Type:  # noqa: A002
    """Return the type of lists of this type, read into a tuple."""
    return Type(
        f"a list, each {type.allowed}",
        parse=lambda value, key: tuple(
            type.read(item, f"{key}[{number}]") for number, item in enumerate(read_list(value, key))
        ),
    )


def table_of(cls: type[Any]) -> Type:
    """Return the type of tables that are read as this settings class."""
    return Type("a table", parse=lambda value, key: value if isinstance(value, cls) else read_settings(cls, value, key))


def rows_of(cls: type[Any]) -> Type:
    """Return the type of lists of tables that are each read as this settings class."""
    return Type("a list of tables", parse=lambda value, key: read_rows(cls, value, key))


def read_kinds(name: object, where: str) -> tuple[Kind, ...]:
    """Return the kind of this name, or all kinds of the group of this name."""
    if isinstance(name, str) and name in GROUPS:
        return GROUPS[name]
    if isinstance(name, str) and name in tuple(Kind):
        return (Kind(name),)
    allowed = f"a kind ({', '.join(Kind)}) or a group ({', '.join(GROUPS)})"
    raise ConfigError(f"{where}.{name}", name, allowed + suggest_names(name, (*GROUPS, *Kind)))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple | frozenset) and all(_is_text(item) for item in value)


def _is_command(value: object) -> bool:
    """Whether the value is a list of texts whose first is not empty; an empty list means no command."""
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
