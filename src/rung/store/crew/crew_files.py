"""Crew tables among the files of a folder, told by the header of SQLite files without opening them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.store.crew.connection import APPLICATION_ID

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC: Final = b"SQLite format 3\0"
_ID_OFFSET: Final = 68  # of the application id in the header, 4 bytes, big-endian
_HEADER_BYTES: Final = 100


def crew_files(folder: Path) -> list[Path]:
    """Return the crew tables that lie in a folder as `*.db`, by name. What cannot be read is left out."""
    try:
        return sorted(file for file in folder.glob("*.db") if file.is_file() and _is_crew_table(file))
    except OSError:
        return []


def _is_crew_table(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            header = opened.read(_HEADER_BYTES)
    except OSError:
        return False
    found = int.from_bytes(header[_ID_OFFSET : _ID_OFFSET + 4], "big")
    return header.startswith(_MAGIC) and found == APPLICATION_ID
