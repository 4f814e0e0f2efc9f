"""Data directory of hooks: its path, file locks, and the notes about interrupted sessions."""

from __future__ import annotations

import os
import sys

ENV_VARIABLE = "RUNG_HOOKS"


def default_data_dir() -> str:
    """Return the directory of this user's hooks: RUNG_HOOKS, or a folder in the platform's data directory."""
    configured = os.environ.get(ENV_VARIABLE)
    if configured:
        return configured
    home = os.path.expanduser("~")  # noqa: PTH111  # pathlib costs milliseconds
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")  # noqa: PTH118
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")  # noqa: PTH118
    else:
        base = os.environ.get("XDG_DATA_HOME") or ""
        if not os.path.isabs(base):  # noqa: PTH117  # the XDG specification says to ignore relative paths
            base = os.path.join(home, ".local", "share")  # noqa: PTH118
    return os.path.join(base, "rung", "hooks")  # noqa: PTH118


def make_private(data_dir: str) -> None:
    """Create the directory, and close it to other accounts; raise ConfigError if it belongs to one."""
    from rung.core.domain.errors import ConfigError

    try:
        os.makedirs(data_dir, mode=0o700, exist_ok=True)  # noqa: PTH103
        status = os.stat(data_dir)  # noqa: PTH116
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            raise ConfigError(ENV_VARIABLE, data_dir, "a directory that belongs to you")
        if status.st_mode & 0o077:
            os.chmod(data_dir, 0o700)  # noqa: PTH101
    except OSError as error:
        raise ConfigError(ENV_VARIABLE, data_dir, f"a directory that can be written ({error.strerror})") from None


def try_lock(handle: int) -> bool:
    """Lock an open file exclusively; false if another process holds the lock. Always true on Windows."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except BlockingIOError:
        return False
    return True


def interruptions_dir(data_dir: str) -> str:
    """Return the folder of StopFailure events. A shell writes them: the agent does not wait for an interpreter."""
    return os.path.join(data_dir, "cut")  # noqa: PTH118


def pop_interruption(data_dir: str, session: str) -> str:
    """Return why this session was interrupted, and delete the note; empty if it was not."""
    import json

    reason = ""
    try:
        entries = list(os.scandir(interruptions_dir(data_dir)))
    except OSError:
        return ""
    for entry in entries:
        try:
            with open(entry.path, "rb") as file:  # noqa: PTH123
                table = json.loads(file.read())
        except (OSError, ValueError):
            continue  # incomplete or not JSON: left for the next call
        if isinstance(table, dict) and table.get("session_id") == session:
            parts = (table.get("error"), table.get("error_details"), table.get("last_assistant_message"))
            reason = "\n".join(str(part) for part in parts if part) or "no reason given"
            os.unlink(entry.path)  # noqa: PTH108
    return reason
