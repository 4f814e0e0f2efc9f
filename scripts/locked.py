"""Versions of constraints.txt, for installations in which a file of our own has no hash."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PIN: Final = re.compile(r"^([a-z0-9.-]+)==([^\s;\\]+)", re.MULTILINE)


def locked_versions() -> dict[str, str]:
    """Return the locked version of each package."""
    return dict(_PIN.findall((Path(__file__).parent.parent / "constraints.txt").read_text()))
