"""`rung resume` and `rung run --run-id`: real processes, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import rung
from tests.trusting import write_trusted
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung"]
TASKS = """
import time, pathlib, rung
side = pathlib.Path("side.txt")
def act(what):
    with side.open("a") as file:
        file.write(what + "\\n")
    return what
@rung.durable.task("two-steps")
def two_steps(pause):
    rung.durable.step("one", act, "one")
    time.sleep(pause)
    return [rung.durable.step("two", act, "two")]
if __name__ == "__main__":
    rung.durable.start(rung.journal("j.db"), "r-1", "two-steps", pause=600)
"""


def rung_(*words: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUNG, *words], cwd=cwd, input=given, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_task_is_taken_up(tmp_path: Path) -> None:
    """A run killed between two steps is listed, and resumed by another process; each step runs once."""
    (tmp_path / "mytasks.py").write_text(TASKS)
    process = subprocess.Popen([sys.executable, "mytasks.py"], cwd=tmp_path)
    side = tmp_path / "side.txt"
    wait_until(side.exists)
    with rung.journal(tmp_path / "j.db") as journal:
        wait_until(lambda: journal.read("SELECT key FROM step"))
    running = json.loads(rung_("resume", "--list", "--json", "--journal", "j.db", cwd=tmp_path).stdout)
    assert running["runs"] == [{"run": "r-1", "task": "two-steps", "state": "running"}]
    process.send_signal(signal.SIGKILL)
    process.wait()
    unknown = json.loads(rung_("resume", "--json", "--journal", "j.db", cwd=tmp_path).stdout)
    assert unknown["runs"][0]["state"] == "task not imported"
    (tmp_path / "mytasks.py").write_text(TASKS.replace("time.sleep(pause)", "pass"))
    done = rung_("resume", "--import", "mytasks", "--journal", "j.db", cwd=tmp_path)
    assert (done.returncode, "r-1  two-steps  done  ['two']" in done.stdout) == (0, True), done
    assert side.read_text() == "one\ntwo\n"
    assert rung_("resume", "--journal", "j.db", cwd=tmp_path).stdout == "No open runs.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--journal", "none.db"), "there is no journal yet"),
        (("--import", "no_such_module", "--journal", "j.db"), "no_such_module"),
        (("r-9", "--journal", "j.db"), "'r-9'"),
        (("--idempotent", "--journal", "j.db"), "--idempotent needs RUN"),
    ],
)
def test_bad_input(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Wrong usage is a one-line error; exit code 2."""
    from rung.store import open_journal

    open_journal(tmp_path / "j.db").close()
    result = rung_("resume", *words, cwd=tmp_path)
    assert (result.returncode, said in result.stderr, result.stderr.count("\n")) == (2, True, 1), result.stderr


def test_a_command_with_a_run_id(tmp_path: Path) -> None:
    """The same command with the same id prints the outcome, and runs nothing."""
    count = f"import pathlib; p = pathlib.Path({str(tmp_path / 'n')!r}); p.write_text((p.read_text() if p.exists() else '') + 'x'); print('hi')"
    for _ in range(2):
        result = rung_("run", "--run-id", "c-1", "--journal", "j.db", "--", sys.executable, "-c", count, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (0, "hi\n"), result.stderr
    assert (tmp_path / "n").read_text() == "x"
    assert rung_("run", "--no-journal", "--run-id", "x", "--", "true", cwd=tmp_path).returncode == 2


def test_a_journal_that_cannot_be_used(tmp_path: Path) -> None:
    """A requested journal that is invalid is exit code 2; for the default one, a warning, and the work continues."""
    (tmp_path / "bad.db").write_text("this is no journal, but a text that is long enough to be looked at" * 20)
    asked = rung_("run", "--journal", "bad.db", "--", "true", cwd=tmp_path)
    assert (asked.returncode, "is not a journal" in asked.stderr) == (2, True), asked.stderr
    write_trusted(tmp_path / "rung.toml", 'journal = "bad.db"\n')
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    result = subprocess.run(
        [*RUNG, "run", "--", "echo", "ok"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (result.returncode, result.stdout, "no journal is written" in result.stderr) == (0, "ok\n", True), result
