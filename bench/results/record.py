"""The figures of one benchmark with their date, command, versions and machine, as a small JSON file in docs/results."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# An absolute path tells of the machine, which nobody else has.
_PATH: Final = re.compile(r"(?<![\w.~/<])(?:/(?:home|root|tmp|usr|var|work|Users|mnt|opt)/|[A-Z]:\\)")
MAX_DIGITS: Final = 6


class BadRecord(Exception):
    """A file of results is invalid; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one run of a benchmark measured."""

    name: str
    date: str
    command: str
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    figures: Any

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.date):
            raise BadRecord(f"{self.name}: date must be YYYY-MM-DD, not {self.date!r}")
        found = _PATH.search(self.text())
        if found:
            near = self.text()[max(0, found.start() - 40) : found.end() + 40]
            raise BadRecord(f"{self.name}: no paths of a machine are allowed: {near!r}")

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def machine() -> dict[str, Any]:
    """Return what the figures depend on: cores, Python, and how busy the machine is."""
    return {"cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 1)}


def rounded(value: Any) -> Any:
    """Return a value with all floats rounded to six significant digits, which keeps files small and diffs short."""
    if isinstance(value, float):
        return float(f"{value:.{MAX_DIGITS}g}") if abs(value) < 10**MAX_DIGITS else round(value)
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def read_records(folder: Path) -> dict[str, Record]:
    """Return all records of a folder by name; raise `BadRecord` for the first invalid file."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.json"))}


def _read(path: Path) -> Record:
    fields = set(Record.__dataclass_fields__)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadRecord(f"{path.name}: {error}") from error
    if not isinstance(found, dict) or found.keys() != fields:
        raise BadRecord(f"{path.name}: must be an object with the keys {', '.join(sorted(fields))}")
    if found["name"] != path.stem:
        raise BadRecord(f"{path.name}: the name in it is {found['name']!r}")
    return Record(**found)
