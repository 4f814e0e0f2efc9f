"""Where hooks keep what they must remember between two events."""

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
