"""`rung run` learns from its journal: a rung that seldom helps is left out, and the outcome says so."""

from __future__ import annotations

import json
import subprocess
import sys
from time import time
from typing import TYPE_CHECKING

from click.testing import CliRunner

import rung
from rung.cli.policy.policy import command as policy_command
from rung.store import open_journal
from rung.testing import FakeClock, Script

if TYPE_CHECKING:
    from pathlib import Path

LEARNS = "[policy.learn]\nenabled = true\nmin_attempts = 10\nexplore = 0.0\n"


def test_a_command_that_only_its_fallback_fixes(tmp_path: Path) -> None:
    """After enough runs in vain the fallback is taken at once; each skipped rung is told with its rate."""
    lost = rung.AttemptError("no such file: notes.txt", finding="not_found")
    with open_journal(tmp_path / "journal.db") as journal:
        for _ in range(12):
            rung.recover_sync(
                Script(*[lost] * 5, "fine"),
                rung.Request(prompt="do it"),
                policy=rung.policy("task", agents=["other"], report=""),
                journal=journal,
                clock=FakeClock(time() - 60),
                retry_budget=None,
                breakers=rung.BreakerRegistry(),
            )
    (tmp_path / "rung.toml").write_text(LEARNS)
    words = ["--journal", "journal.db", "--policy", "rung.toml", "--json", "--fallback", "echo fine"]
    agent = ["--", "sh", "-c", "echo 'error: no such file: another one' >&2; exit 1"]
    done = subprocess.run(
        [sys.executable, "-m", "rung", "run", *words, *agent],
        capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False,
    )  # fmt: skip
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert (outcome["status"], outcome["attempts"], outcome["escalationPath"]) == ("recovered", 2, [4])
    assert [(each["rung"], each["reason"][:22]) for each in outcome["skipped"]] == [
        ("nudge", "learned: 0 of 36 tries"),
        ("replan", "learned: 0 of 12 tries"),
    ]


def test_the_policy_says_that_it_learns(tmp_path: Path) -> None:
    """`rung policy check` shows how much it takes to leave out a rung, and how often it is measured again."""
    file = tmp_path / "rung.toml"
    file.write_text(LEARNS)
    shown = " ".join(CliRunner().invoke(policy_command, ["check", str(file)]).output.split())
    assert "learn yes: follow what helped before (10 or more tries in 720 h); 0% of incidents" in shown
