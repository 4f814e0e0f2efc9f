"""Reports of a crew name the likely reason, and commands that can be pasted."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.crew.running import RUNG, RunningCrew

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[RunningCrew]:
    """Return a crew in a folder whose name has a space; its processes are killed afterwards."""
    folder = tmp_path / "a crew"
    folder.mkdir()
    made = RunningCrew(folder)
    yield made
    made.close()


def test_a_plain_command_is_told_what_it_needs(place: RunningCrew) -> None:
    """A worker that never claims its task is given up; the report says why, and its command works as it is printed."""
    place.plan([{"id": "hard", "command": ["true"], "redispatches": 0}])
    front = place.run()
    assert front.wait(timeout=120) == 4, place.log()
    report = (place.folder / "crew.db.d/escalations/hard.md").read_text()
    assert "died before it claimed the task" in report
    assert "needs `rung worker run --check … --` before it" in report
    line = next(line for line in report.splitlines() if "rung crew restart" in line)
    words = shlex.split(line.split("`")[1])
    assert words[-2:] == ["--db", place.url]
    done = subprocess.run([*RUNG, *words[1:]], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [*RUNG, "crew", "status", "--json", "--db", place.url], capture_output=True, text=True, check=True
    )
    lease = json.loads(shown.stdout)["lease"]
    assert (lease["live"], lease["seconds_left"]) == (False, None)
