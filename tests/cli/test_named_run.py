"""`rung run --run-id`: real processes, stopped and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rung.cli.run.named_run import TASK, RunProcess, claimable_id
from tests.waiting import is_running, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("unmeasured_processes")
RUNG = [sys.executable, "-m", "rung"]
# Writes its PIDs and waits, until there is a file `go`: then it succeeds.
AGENT = 'echo "$$" >> pids; test -e go && { echo fine; exit 0; }; sleep 600 & echo "$!" >> pids; touch ready; wait'


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def words(*options: str, agent: str = AGENT) -> list[str]:
    return [*RUNG, "run", "--run-id", "c-1", "--journal", "j.db", *options, "--", "sh", "-c", agent]


def call(line: list[str], folder: Path, given: str = "task") -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, cwd=folder, input=given, capture_output=True, text=True, timeout=60, check=False)


def stopped(folder: Path, number: int, *options: str) -> tuple[int, str, str]:
    """Start the run, stop it in its first attempt, and return its exit code, output and messages."""
    process = subprocess.Popen(
        words(*options), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write("task")
    process.stdin.close()
    process.stdin = None
    wait_until((folder / "ready").exists)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    return process.returncode, out, errors


def pids(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "pids").read_text().split()]


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.stdout, len(done.stderr.strip().splitlines())) == ("", 1), done
    return done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_a_stopped_run_goes_on(tmp_path: Path, number: int, code: int) -> None:
    """Stopped in an attempt, by whatever signal, the same command with --idempotent continues, and ends once."""
    ended, out, errors = stopped(tmp_path, number)
    assert ended == code
    if code > 0:
        assert json.loads(out)["status"] == "partial"
        assert "'c-1' stays open" in errors
    (tmp_path / "go").touch()
    done = call(words("--idempotent"), tmp_path)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert not any(is_running(pid) for pid in pids(tmp_path))
    made = len(pids(tmp_path))
    again = call(words(), tmp_path)
    assert (again.returncode, again.stdout, len(pids(tmp_path))) == (0, "fine\n", made)


def test_side_effects_are_not_repeated_without_a_word(tmp_path: Path) -> None:
    """Without --idempotent an attempt that was cut off is not repeated: exit code 2, and the run stays open."""
    stopped(tmp_path, signal.SIGTERM)
    (tmp_path / "go").touch()
    for _ in range(2):
        done = call(words(), tmp_path)
        assert (done.returncode, "--idempotent" in one_line(done)) == (2, True)
    assert call(words("--idempotent"), tmp_path).returncode == 0


def test_resume_repeats_side_effects_with_a_word(tmp_path: Path) -> None:
    """`rung resume ID` refuses to repeat an attempt that was cut off, and names the option that allows it."""
    stopped(tmp_path, signal.SIGKILL)
    (tmp_path / "go").touch()
    resume = [*RUNG, "resume", "--journal", str(tmp_path / "j.db"), "c-1"]
    assert "`rung resume c-1 --idempotent`" in one_line(call(resume, tmp_path))
    done = call([*resume, "--idempotent"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_a_check_makes_a_command_repeatable(tmp_path: Path) -> None:
    """With a check, which decides about the result, a stopped command continues without --idempotent."""
    stopped(tmp_path, signal.SIGTERM, "--check", "true")
    (tmp_path / "go").touch()
    assert call(words("--check", "true"), tmp_path).returncode == 0
    assert call(words("--check", "true", "--not-idempotent"), tmp_path).returncode == 0  # ended: nothing is repeated


def test_resume_says_what_to_type(tmp_path: Path) -> None:
    """`rung resume` prints the command that continues a stopped run, without the secrets in it."""
    secret = "sk-ant-api03-" + "a1B2" * 20
    stopped(tmp_path, signal.SIGTERM, "--project", secret)
    shown = call([*RUNG, "resume", "--journal", "j.db", "--json"], tmp_path).stdout
    row: dict[str, Any] = json.loads(shown)["runs"][0]
    assert (row["run"], row["state"], row["folder"]) == ("c-1", "waits for its command", str(tmp_path))
    assert "rung run --run-id c-1 --journal j.db" in row["command"]
    assert row["command"].endswith("< INPUT")
    assert secret not in shown
    assert "--run-id c-1" in call([*RUNG, "resume", "--journal", "j.db"], tmp_path).stdout
    refused = call([*RUNG, "resume", "--journal", "j.db", "c-1"], tmp_path)
    assert (refused.returncode, "--run-id c-1" in one_line(refused)) == (
        2,
        True,
    )  # without the secret it is another one


def test_resume_takes_the_run_up(tmp_path: Path) -> None:
    """`rung resume ID` runs the command of a stopped run again, in its directory and with the input that it is given."""
    stopped(tmp_path, signal.SIGTERM, "--check", "true")
    (tmp_path / "go").touch()
    resume = [*RUNG, "resume", "--journal", str(tmp_path / "j.db"), "c-1"]
    printed = call([*resume, "--print"], tmp_path)
    assert (printed.returncode, "rung run --run-id c-1" in printed.stdout) == (0, True)
    other = call(resume, tmp_path.parent, "another task")
    assert (other.returncode, "the input" in other.stderr) == (2, True)
    done = call(resume, tmp_path.parent)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


TAKES_OVER = """
import rung
with rung.journal("j.db") as journal:
    journal.write(lambda connection: connection.execute("UPDATE run SET epoch = epoch + 1"), lambda _: True).result()
"""


def test_a_run_that_was_taken_over(tmp_path: Path) -> None:
    """A process that has lost its run to another one ends with one line and exit code 6, and records nothing."""
    (tmp_path / "take.py").write_text(TAKES_OVER)
    done = call(words(agent=f"{sys.executable} take.py; echo fine"), tmp_path)
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert "'c-1' was taken over by another process" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_run_that_cannot_go_on(tmp_path: Path) -> None:
    """A run whose changed request cannot be made whole again is refused with exit code 2, and stays open."""
    import rung

    secret = "sk-ant-api03-" + "a1B2" * 20
    agent = f'cat > /dev/null; test -e once || {{ touch once; echo "404 not found" >&2; exit 1; }}; {AGENT}'
    process = subprocess.Popen(
        words(agent=agent),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(f"log in with {secret}")
    process.stdin.close()
    process.stdin = None
    wait_until((tmp_path / "ready").exists)
    process.kill()
    process.communicate(timeout=60)
    with rung.journal(tmp_path / "j.db") as journal:  # as an older version recorded it
        journal.write(
            lambda connection: connection.execute("DELETE FROM step WHERE key LIKE 'request.%'"), lambda _: True
        ).result()
    for _ in range(2):
        done = call(words("--idempotent", agent=agent), tmp_path, f"log in with {secret}")
        assert (done.returncode, "secrets" in one_line(done)) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("line", "given", "named"),
    [
        (words(agent="echo other"), "task", "the command"),
        (words(agent="echo fine"), "another task", "the input"),
        (words("--fallback", "cat", agent="echo fine"), "task", "--fallback"),
    ],
)
def test_another_call_under_the_same_id(tmp_path: Path, line: list[str], given: str, named: str) -> None:
    """Another command, task or fallback under an id that is taken is refused, with what differs."""
    assert call(words(agent="echo fine"), tmp_path).stdout == "fine\n"
    done = call(line, tmp_path, given)
    assert (done.returncode, named in one_line(done)) == (2, True), done.stderr


def test_an_id_of_another_kind(tmp_path: Path) -> None:
    """The id of a task's run is not that of a command."""
    import rung

    with rung.journal(tmp_path / "j.db") as journal:
        journal.runs.submit("c-1", "two-steps", {})
    done = call(words(agent="echo fine"), tmp_path)
    assert (done.returncode, "two-steps" in one_line(done)) == (2, True)


def test_a_run_that_ended_badly_starts_again(tmp_path: Path) -> None:
    """After a run that ended partial, the same command runs again under the next number."""
    agent = "test -e go && echo fine || { echo half; exit 1; }"
    first = call(words("--max-attempts", "1", agent=agent), tmp_path)
    assert (first.returncode, json.loads(first.stdout)["output"]) == (3, "half\n")
    (tmp_path / "go").touch()
    for _ in range(2):
        again = call(words(agent=agent), tmp_path)
        assert (again.returncode, again.stdout) == (0, "fine\n"), again.stderr
        assert "'c-1~2'" in again.stderr


def test_a_run_that_an_older_version_closed(tmp_path: Path) -> None:
    """A run that was closed when it was stopped starts again; one whose process died after its end goes on to its result."""
    import rung

    call = {"command": "", "fallbacks": "", "input": "", "folder": ""}

    def stop(_: rung.Request) -> None:
        raise KeyboardInterrupt

    with rung.journal(tmp_path / "j.db") as journal:
        for name in ("stopped", "ended"):
            journal.runs.submit(name, TASK, call)
        with pytest.raises(KeyboardInterrupt):
            rung.durable.recover_sync(stop, "x", run_id="stopped", journal=journal, close_when_stopped=True)
        with journal.runs.claim("ended") as lease:
            events = rung.recover_sync(stop_short, "x", policy="task", incident_id="ended").events
            lease.append("ended", 0, events).result()
            lease.release()
        assert claimable_id(journal, "stopped", call, may_repeat=True) == "stopped~2"
        assert claimable_id(journal, "ended", call, may_repeat=True) == "ended"


def stop_short(_: object) -> None:
    raise PermissionError(13, "no credentials: 401 invalid x-api-key")


def test_two_at_once(tmp_path: Path) -> None:
    """A second process that runs the same id gets one line and exit code 5."""
    process = subprocess.Popen(words(), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write("task")
    process.stdin.close()
    process.stdin = None
    try:
        wait_until((tmp_path / "ready").exists)
        done = call(words(), tmp_path)
        assert (done.returncode, "another process runs it" in one_line(done)) == (5, True)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_an_orphan_is_ended_first(tmp_path: Path) -> None:
    """The command that a killed `rung run --no-guard` left behind is ended before the next attempt; a stranger is not."""
    stopped(tmp_path, signal.SIGKILL, "--no-guard")
    left = pids(tmp_path)
    assert all(is_running(pid) for pid in left)
    (tmp_path / "go").touch()
    done = call(words("--idempotent"), tmp_path)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert not any(is_running(pid) for pid in left)


def test_a_stranger_is_not_ended(tmp_path: Path) -> None:
    """A process that was not started as the command of this run is left alone, even if the PID file names it."""
    from rung.adapters.system.pid_file import write_pid
    from rung.engine.process_identity import lookup

    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        process = RunProcess("c-1")
        identity = lookup(stranger.pid)
        assert identity is not None
        write_pid(process.file, identity)
        process.end()
        assert is_running(stranger.pid)
        assert not process.file.exists()
    finally:
        os.killpg(stranger.pid, signal.SIGKILL)
        stranger.wait()
