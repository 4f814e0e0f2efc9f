"""Programs of a command line are found before anything runs: exit code 2, one line, no attempt."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.trusting import write_trusted

if TYPE_CHECKING:
    from pathlib import Path

RUNS = "sh -c 'touch ran'"
AGENT = ("--", "sh", "-c", "touch ran")
STAGE = '[pipeline]\nname = "p"\n[[stage]]\nid = "one"\nprompt = "x"\ncommand = {command}\n'
PLAN = '[crew]\nworker = {worker}\n[[task]]\nid = "a"\ninstruction = "x"\n'


def rung(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rung", *words],
        cwd=cwd,
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(done: subprocess.CompletedProcess[str], named: str, folder: Path) -> None:
    assert (done.returncode, done.stdout) == (2, ""), done
    assert named in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--", "no-such-agent"), "no-such-agent"),
        (("--", ""), "COMMAND"),
        (("--check", "no-such-check", *AGENT), "no-such-check"),
        (("--check", "make 'x", *AGENT), "--check"),
        (("--check", "", *AGENT), "--check"),
        (("--fallback", "no-such-fallback -", *AGENT), "no-such-fallback"),
        (("--fallback", "a 'b", *AGENT), "--fallback"),
        (("--fallback", " ", *AGENT), "--fallback"),
        (("--judge", "/nowhere/judge", *AGENT), "/nowhere/judge"),
        (("--judge", "", *AGENT), "--judge"),
        (("--hook", "attempt.pre=no-such-hook", *AGENT), "no-such-hook"),
        (("--hook", "attempt.pre=a 'b", *AGENT), "--hook"),
    ],
)
def test_rung_run(tmp_path: Path, words: tuple[str, ...], named: str) -> None:
    """An agent, fallback, check, judge or hook that cannot be started is wrong usage."""
    assert_refused(rung("run", "--no-journal", *words, cwd=tmp_path), named, tmp_path)


def test_the_judge_of_a_settings_file(tmp_path: Path) -> None:
    """A judge of `[stop]` that does not exist is refused, too: it would let nothing pass."""
    write_trusted(tmp_path / "rung.toml", '[stop]\njudge = "/nowhere/judge"\n')
    assert_refused(rung("run", "--no-journal", *AGENT, cwd=tmp_path), "stop.judge", tmp_path)


def test_the_hooks_of_a_settings_file(tmp_path: Path) -> None:
    """A hook of `[[hooks]]` that does not exist is refused, too: it could not say no."""
    write_trusted(tmp_path / "rung.toml", '[[hooks]]\nwhen = "attempt.pre"\nrun = "/nowhere/hook"\n')
    assert_refused(rung("run", "--no-journal", *AGENT, cwd=tmp_path), "hooks[0].run", tmp_path)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (STAGE.format(command='["no-such-agent"]'), "no-such-agent"),
        (STAGE.format(command='["sh", "-c", "touch ran"]') + 'check = ["./no-check"]\n', "./no-check"),
    ],
)
def test_a_pipeline(tmp_path: Path, lines: str, named: str) -> None:
    """A stage whose command or check cannot be started is wrong usage, before the first stage runs."""
    (tmp_path / "p.toml").write_text(lines)
    assert_refused(rung("pipeline", "run", "--no-journal", "p.toml", cwd=tmp_path), named, tmp_path)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (PLAN.format(worker='["no-such-worker"]'), "no-such-worker"),
        (
            PLAN.format(worker=f'["{sys.executable}", "-m", "rung", "worker", "run", "--", "no-such-agent"]'),
            "no-such-agent",
        ),
        (PLAN.format(worker='["sh"]') + 'command = ["./no-own-worker"]\nworkdir = "."\n', "./no-own-worker"),
        (PLAN.format(worker='["sh"]\njudge = ["no-such-judge"]'), "no-such-judge"),
    ],
)
def test_a_crew(tmp_path: Path, lines: str, named: str) -> None:
    """A crew whose worker or judge cannot be started creates no database and starts no conductor."""
    (tmp_path / "plan.toml").write_text(lines)
    assert_refused(rung("crew", "run", "plan.toml", cwd=tmp_path), named, tmp_path)
    assert not (tmp_path / "plan.db").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("gateway", "run", "--", "no-such"),
        ("lab", "test", "--", "no-such"),
        ("worker", "run", "--db", "x", "--", "no-such"),
    ],
)
def test_commands_behind_other_commands(tmp_path: Path, words: tuple[str, ...]) -> None:
    """`gateway run`, `lab test` and `worker run` look for their command first, too."""
    assert_refused(rung(*words, cwd=tmp_path), "no-such", tmp_path)
