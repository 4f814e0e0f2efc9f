"""Fixtures: a project with our hooks, and the real agent to run there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rung.hooks.install import InstallTarget, install
from rung.store import open_journal
from tests.hooks.rig import command_line

FAILING = {"tool": "Bash", "input": {"command": "ls /nowhere/at/all", "description": "look"}}


class Stage:
    """A project, its hooks and its journal."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.data = root / "hooks"
        self.journal = root / "journal.db"
        self.project.mkdir()
        self.settings = self.project / ".claude" / "settings.local.json"
        self.place = InstallTarget(agent="claude-code", settings=self.settings, data_dir=self.data)

    def install(self, port: int = 0) -> None:
        install(replace(self.place, port=port))

    def run(self, turns: list[dict[str, Any]], *, rules: list[Any] | None = None, **task: Any) -> dict[str, Any]:
        if command_line() is None:
            if os.environ.get("CI"):
                pytest.fail("the real command is needed here: pip install claude-agent-sdk")
            pytest.skip("claude-agent-sdk is not installed")
        env = {"RUNG_JOURNAL": str(self.journal), **task.pop("env", {})}
        payload = {
            "root": str(self.root),
            "script": {"turns": turns, "rules": rules or []},
            "env": env,
            "data": str(self.data),
            **task,
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.hooks.rig"],
            input=json.dumps(payload), capture_output=True, text=True, timeout=180, check=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def story(self, seconds: float = 30.0) -> list[Any]:
        """Return the events of the incident, once the spool is drained."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            spool = self.data / "spool"
            if self.journal.exists() and not [path for path in spool.glob("*") if path.name != "lock"]:
                with open_journal(str(self.journal)) as journal:
                    found = journal.read("SELECT DISTINCT incident FROM event")
                    if found:
                        assert len(found) == 1
                        return journal.events(found[0][0])
            time.sleep(0.1)
        raise AssertionError(f"no events in the journal: {sorted(self.data.rglob('*'))}")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
