"""A cloned repository, and the account of the user who opened it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rung.hooks.install import ENTRY_PATH

if TYPE_CHECKING:
    from pathlib import Path


class Clone:
    """A repository with settings of its author's, opened by a user with a home of their own."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.settings = self.project / "rung.toml"
        self.ran = root / "ran"  # exists if something of the repository ran
        self.data = self.home / "hooks"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "RUNG_HOOKS": str(self.data),
            "RUNG_HOOKS_RESIDENT": "0",
        }

    def command(self) -> str:
        """Return a command that shows that it ran."""
        return f"touch {self.ran}"

    def rung(self, *arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in the repository, without a terminal."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "rung", *arguments], cwd=cwd or self.project, env={**self.env, **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def event(self, name: str, *, run_in: Path | None = None, **facts: Any) -> dict[str, Any]:
        """Send an event as a coding agent does that works in the repository."""
        event = {"session_id": "s", "cwd": str(self.project), "hook_event_name": name, **facts}
        done = subprocess.run(
            [sys.executable, "-I", "-S", ENTRY_PATH, "claude-code", str(self.data)], cwd=run_in or self.project, env=self.env,
            input=json.dumps(event), capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)
