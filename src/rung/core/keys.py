"""Tables of settings as data: each key with its reader, default and meaning, so that errors and pages say the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from rung.core.errors import ConfigError, is_number, is_whole

NEEDED: Final = object()  # instead of a default
Fits = Callable[[Any], bool]


class Key(NamedTuple):
    """One key: what it may be (a test, and in words), what it is when left out, and what it is for."""

    name: str
    fits: Fits
    allowed: str
    default: Any
    about: str


def read_keys(table: object, keys: tuple[Key, ...], where: str) -> dict[str, Any]:
    """The values of a table by key, checked; a list comes back as a tuple."""
    if not isinstance(table, Mapping):
        raise ConfigError(where, table, "a table")
    known = {key.name: key for key in keys}
    for name, value in table.items():
        if name not in known:
            raise ConfigError(f"{where}.{name}", value, "one of the keys " + ", ".join(known))
        if not known[name].fits(value):
            raise ConfigError(f"{where}.{name}", value, known[name].allowed)
    values = {key.name: table.get(key.name, key.default) for key in keys}
    for name, value in values.items():
        if value is NEEDED:
            raise ConfigError(f"{where}.{name}", None, known[name].allowed)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def read_rows(rows: object, keys: tuple[Key, ...], where: str) -> list[dict[str, Any]]:
    """The same for a list of tables, of which there must be one, each with an `id` of its own."""
    if not isinstance(rows, list) or not rows:
        raise ConfigError(where, rows, f"at least one table: [[{where}]]")
    read = [read_keys(row, keys, f"{where}[{number}]") for number, row in enumerate(rows)]
    seen: set[str] = set()
    for number, row in enumerate(read):
        if row["id"] in seen:
            raise ConfigError(f"{where}[{number}].id", row["id"], f"an id that no other {where} has")
        seen.add(row["id"])
    return read


def is_text(value: object) -> bool:
    """A text that says something."""
    return isinstance(value, str) and bool(value.strip())


def is_any_text(value: object) -> bool:
    """A text, an empty one as well."""
    return isinstance(value, str)


def is_texts(value: object) -> bool:
    """A list of texts."""
    return isinstance(value, list | tuple) and all(is_text(item) for item in value)


def is_command(value: object) -> bool:
    """A list of texts, of which the first is the program; an empty list is no command, and may be given."""
    return (
        isinstance(value, list | tuple)
        and all(isinstance(item, str) for item in value)
        and value[:1] not in ([""], ("",))
    )


def is_count(value: object) -> bool:
    """A whole number, 1 or more."""
    return is_whole(value, 1)


def is_seconds(value: object) -> bool:
    """Seconds, more than 0."""
    return is_number(value) and value != 0


TEXT: Final = "a text"
TEXTS: Final = "a list of texts"
COMMAND: Final = 'a list of texts, the program first: ["agent", "--flag"]'
COUNT: Final = "a whole number, 1 or more"
SECONDS: Final = "seconds, more than 0"
