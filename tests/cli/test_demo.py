"""`rung demo`: five failing agents on the five ladders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rung.cli.demo.scenes import scenes
from rung.core.policy.presets import LADDERS


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rung", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")


def test_every_ladder_has_a_scene() -> None:
    """The demo has one scene per built-in ladder."""
    assert [scene.ladder for scene in scenes()] == list(LADDERS)


def test_the_demo_shows_every_scene_and_what_to_type_next() -> None:
    """`rung demo` prints each story with its ending and the next commands, and writes no journal."""
    done = demo("--fast")
    assert (done.returncode, done.stderr) == (0, "")
    for scene in scenes():
        assert f"{scene.ladder}  {scene.story}\n" in done.stdout
    endings = [line for line in done.stdout.splitlines() if " after " in line]
    assert [line.split()[0] for line in endings] == ["recovered", "recovered", "blocked", "recovered", "recovered"]
    assert "rung run -- your-agent" in done.stdout
    assert not Path(os.environ["RUNG_JOURNAL"]).exists()


def test_the_demo_is_the_same_in_every_run() -> None:
    """Two runs print the same text, so the recording in README can be compared with it."""
    assert demo("--fast").stdout == demo("--fast").stdout


def test_one_ladder() -> None:
    """`rung demo LADDER` shows that ladder alone, and an unknown one is refused with the list."""
    done = demo("call", "--fast")
    assert [line.split()[0] for line in done.stdout.splitlines() if " after " in line] == ["recovered"]
    assert "resume" in done.stdout
    refused = demo("climb")
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in LADDERS)
