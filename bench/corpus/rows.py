"""Read labelled errors from a file of JSON lines: the classifier's input, and the expected answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMS: Final = ("http", "exception", "tool", "output")
VISIBLE_FIELDS: Final = ("form", "provider", "status", "headers", "body", "exception_type", "message", "exit_code")

_NULL: Final = type(None)
# Exact types, because isinstance() accepts `true` as an int.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "id": (str,),
    "form": (str,),
    "label": (str,),
    "retryable": (bool,),
    "also": (list, _NULL),
    "retry_after_s": (int, float, _NULL),
    "provider": (str, _NULL),
    "status": (int, _NULL),
    "headers": (dict, _NULL),
    "body": (str, dict, list, _NULL),
    "exception_type": (str, _NULL),
    "message": (str, _NULL),
    "exit_code": (int, _NULL),
}
_REQUIRED: Final = ("id", "form", "label", "retryable")


class BadFile(Exception):
    """The file is invalid; the message names the line and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One error: `seen` is the classifier's input, the rest is the expected answer."""

    id: str
    form: str
    seen: dict[str, Any]
    label: Kind
    also: frozenset[Kind]
    retryable: bool
    retry_after: float | None

    @property
    def text(self) -> str:
        """Return the error's text on one line."""
        text = self.seen.get("body") or self.seen.get("message") or ""
        return " ".join((text if isinstance(text, str) else json.dumps(text)).split())


def read_rows(path: Path) -> list[Row]:
    """Return all rows; raise `BadFile` for the first invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: not UTF-8: {error}") from error
    rows: dict[str, Row] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _parse_row(line)
            if row.id in rows:
                raise BadFile(f"field 'id': {row.id!r} is a duplicate")
        except BadFile as error:
            raise BadFile(f"{path}: line {number}: {error}") from None
        rows[row.id] = row
    if not rows:
        raise BadFile(f"{path}: no rows")
    return list(rows.values())


def _parse_row(line: str) -> Row:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadFile(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadFile(f"must be an object, not {type(found).__name__}")
    _check(found)
    wait = found.get("retry_after_s")
    return Row(
        id=found["id"],
        form=found["form"],
        seen={name: found[name] for name in VISIBLE_FIELDS if name in found},
        label=Kind(found["label"]),
        also=frozenset(_kind("also", name) for name in found.get("also") or ()),
        retryable=found["retryable"],
        retry_after=None if wait is None else float(wait),
    )


def _check(found: dict[str, Any]) -> None:
    for name in _REQUIRED:
        if name not in found:
            raise BadFile(f"field {name!r} is missing")
    for name, allowed in _TYPES.items():
        if name in found and type(found[name]) not in allowed:
            wanted = " or ".join("null" if one is _NULL else one.__name__ for one in allowed)
            raise BadFile(f"field {name!r}: {found[name]!r:.60} is not {wanted}")
    if found["form"] not in FORMS:
        raise BadFile(f"field 'form': {found['form']!r:.60} must be one of {', '.join(FORMS)}")
    _kind("label", found["label"])
    wait = found.get("retry_after_s")
    if wait is not None and not 0 <= wait < float("inf"):
        raise BadFile(f"field 'retry_after_s': {wait!r} is not a number of seconds")


def _kind(field: str, name: object) -> Kind:
    try:
        return Kind(name)  # type: ignore[arg-type]  # checked by the call
    except ValueError:
        raise BadFile(f"field {field!r}: {name!r:.60} is not a kind") from None
