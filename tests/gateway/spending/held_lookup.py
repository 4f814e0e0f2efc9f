"""A lookup of list prices that waits until the test lets it go on: a real process in front of the real list."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_WAITING = """#!/bin/sh
echo started >> "{folder}/started"
while [ ! -e "{folder}/go" ]; do sleep 0.02; done
{action}
"""


class HeldLookup:
    """Holds every lookup of this process back until `release`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
        folder.mkdir()
        self._folder = folder
        script = folder / "python"
        script.write_text(_WAITING.format(folder=folder, action="exit 1" if fails else f'exec "{sys.executable}" "$@"'))
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))

    @property
    def is_running(self) -> bool:
        """Whether a lookup has begun."""
        return (self._folder / "started").exists()

    def release(self) -> None:
        """Let all lookups go on."""
        (self._folder / "go").touch()
