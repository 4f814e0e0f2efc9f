"""The directory for Rung's files of this user."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_data_dir(platform: str = sys.platform) -> Path:
    """Return Rung's directory in the platform's user data directory."""
    if platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or ""
        if not Path(base).is_absolute():  # the XDG specification says to ignore relative paths
            base = str(Path.home() / ".local" / "share")
    return Path(base) / "rung"
