"""Data directory of hooks: where it is, locks on its files, and what a shell leaves there when a session breaks off."""

from __future__ import annotations

import os
import sys

VARIABLE = "RUNG_HOOKS"


def directory() -> str:
    """This user's directory for hooks, beside the journal: RUNG_HOOKS, or in the platform's data directory."""
    set_to = os.environ.get(VARIABLE)
    if set_to:
        return set_to
    home = os.path.expanduser("~")  # noqa: PTH111  # pathlib costs milliseconds
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")  # noqa: PTH118
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")  # noqa: PTH118
    else:
        base = os.environ.get("XDG_DATA_HOME") or ""
        if not os.path.isabs(base):  # noqa: PTH117  # the standard says to ignore one that is not
            base = os.path.join(home, ".local", "share")  # noqa: PTH118
    return os.path.join(base, "rung", "hooks")  # noqa: PTH118


def try_lock(handle: int) -> bool:
    """Lock an open file for this process alone; false while another holds it. Windows has no such lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except BlockingIOError:
        return False
    return True


def cut_folder(place: str) -> str:
    """Folder of the events that say why a session broke off: a shell writes them, an interpreter would be too slow."""
    return os.path.join(place, "cut")  # noqa: PTH118


def cut_off(place: str, session: str) -> str:
    """Why this session broke off; empty when it did not. The session's files are removed."""
    import json

    why = ""
    try:
        entries = list(os.scandir(cut_folder(place)))
    except OSError:
        return ""
    for entry in entries:
        try:
            with open(entry.path, "rb") as file:  # noqa: PTH123
                table = json.loads(file.read())
        except (OSError, ValueError):
            continue  # being written just now, or no JSON: the next one who looks finds it again
        if isinstance(table, dict) and table.get("session_id") == session:
            parts = (table.get("error"), table.get("error_details"), table.get("last_assistant_message"))
            why = "\n".join(str(part) for part in parts if part) or "no reason was given"
            os.unlink(entry.path)  # noqa: PTH108
    return why
