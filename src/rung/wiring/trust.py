"""Trust in settings files: a user's decision about one path with one content, kept in the user's state directory.

As with direnv, a file that changes by one byte is a new question. A decision is a file named by the digest of path and
content, so that looking one up is one read. Decisions in a folder that others can write to do not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.wiring.settings_file import SettingsFile

MAX_NOTES: Final = 200  # of files that nobody has decided about
STATE_VARIABLE: Final = "XDG_STATE_HOME"


class Decision(StrEnum):
    """A user's decision about a settings file."""

    TRUSTED = "trusted"  # all of the file is used
    DENIED = "denied"  # its policy alone is used, and nobody is asked again
    UNDECIDED = "undecided"  # its policy alone is used, and the user is asked or told


def _nobody(_: SettingsFile) -> None:
    """Return no decision: there is nobody to ask."""


def _log(text: str) -> None:
    import logging

    logging.getLogger("rung").warning("%s", text)


ask: Callable[[SettingsFile], Decision | None] = _nobody
notify: Callable[[str], None] = _log


def use_terminal(asks: Callable[[SettingsFile], Decision | None], notifies: Callable[[str], None]) -> None:
    """Set how the whole process asks about an undecided file, and reports that one is not trusted."""
    global ask, notify  # set once, by the command line
    ask, notify = asks, notifies


def decision_about(path: Path, content: bytes) -> Decision:
    """Return the user's decision about this content at this path."""
    record = _read_record(_folder() / _digest(path, content)) if _is_own(_folder()) else {}
    found = record.get("decision")
    return Decision(found) if found in tuple(Decision) else Decision.UNDECIDED


def decide(path: Path, content: bytes, decision: Decision) -> None:
    """Store a decision; UNDECIDED withdraws one, and has the file listed."""
    folder = _folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_own(folder):
            raise FileError(folder, "must belong to you, and nobody else may write to it")
        record = folder / _digest(path, content)
        new = record.with_name(f"{record.name}.{os.getpid()}")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump({"path": str(located(path)), "decision": decision}, file)
        new.replace(record)
    except OSError as error:
        raise FileError(folder, f"cannot be written: {error.strerror}") from None


def note_met(path: Path, content: bytes) -> None:
    """Note that a file was met that nobody has decided about, so that it is listed."""
    if not (_folder() / _digest(path, content)).exists():
        decide(path, content, Decision.UNDECIDED)
        _prune()


def _prune() -> None:
    """Drop the oldest notes of files that nobody has decided about, so that temporary clones do not add up."""
    notes = [path for path in _folder().iterdir() if _read_record(path).get("decision") == Decision.UNDECIDED]
    for path in sorted(notes, key=lambda note: note.stat().st_mtime, reverse=True)[MAX_NOTES:]:
        path.unlink(missing_ok=True)


def known_paths() -> list[Path]:
    """Return every settings file that a decision was made about, or that was met without one."""
    folder = _folder()
    if not _is_own(folder):
        return []
    return sorted({Path(record["path"]) for one in folder.iterdir() if "path" in (record := _read_record(one))})


def located(path: Path) -> Path:
    """Return where a file lies. A link as the last part is kept: its target was trusted at another place, if at all."""
    return Path(os.path.realpath(path.parent)) / path.name


def _digest(path: Path, content: bytes) -> str:
    return hashlib.sha256(os.fsencode(located(path)) + b"\0" + content).hexdigest()


def _folder(platform: str = sys.platform) -> Path:
    """Return the folder of decisions, in the user's state directory."""
    base = os.environ.get(STATE_VARIABLE, "")
    if not Path(base).is_absolute():  # the XDG specification says to ignore relative paths
        if platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        elif platform == "darwin":
            base = str(Path.home() / "Library" / "Application Support")
        else:
            base = str(Path.home() / ".local" / "state")
    return Path(base) / "rung" / "trust"


def _is_own(folder: Path) -> bool:
    """Return whether the folder belongs to this user and nobody else can write to it."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def _read_record(path: Path) -> dict[str, Any]:
    """Return a stored decision; empty if there is none."""
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
