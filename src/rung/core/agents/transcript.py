"""Session files of agents: one JSON object for each line. A damaged one is repaired as a copy under another id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

INTERRUPTED_TEXT: Final = (
    "[This call was interrupted before its result was recorded. Its effect is unknown: it may have happened completely, "
    "in part or not at all. Check what exists before you make the call again.]"
)


class RepairedTranscript(NamedTuple):
    """Repaired copy of a session file, and what was repaired; nothing was damaged if `damage` is empty."""

    data: bytes
    damage: tuple[str, ...]


def read_entries(data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects of a session file, and one text about each line that is not one."""
    entries: list[dict[str, Any]] = []
    damage: list[str] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError:  # also UnicodeDecodeError
            entry = None
        except RecursionError:
            entry = None
        if isinstance(entry, dict):
            entries.append(entry)
        else:
            damage.append("the last line is truncated" if number == len(lines) else f"line {number} cannot be read")
    return entries, damage


def write_entries(entries: Iterable[dict[str, Any]]) -> bytes:
    """Return the session file of these objects."""
    lines = (json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def interrupted(names: Iterable[str]) -> list[str]:
    """Return one text about each call that has no result."""
    return [f"a call of {name} has no result" for name in names]
