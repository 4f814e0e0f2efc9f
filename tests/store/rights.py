"""Commands that are subject to file permissions, even when the tests run as root."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DROPPED = "-dac_override,-dac_read_search"


def bound(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of this Python as a user who is subject to file permissions."""
    before = [] if os.geteuid() else ["setpriv", f"--bounding-set={_DROPPED}", f"--inh-caps={_DROPPED}"]
    words = [*before, sys.executable, *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
