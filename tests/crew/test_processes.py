"""Worker processes: PID files, identity and termination."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.pid_file import read_pid, write_pid
from rung.adapters.system.worker_processes import RealProcesses, signal_group
from rung.engine.process_identity import ProcessId, current_process, is_alive, is_group_alive, lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG = 180.0
SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[RealProcesses]:
    made = RealProcesses(tmp_path)
    yield made
    for name in made.names():
        made.end(name, 0.0)


def test_the_file_is_there_before_the_command_runs(processes: RealProcesses, tmp_path: Path) -> None:
    """The PID file exists before the command starts, so no process is ever untracked."""
    look = (
        f"import os; open({str(tmp_path / 'seen')!r}, 'w').write(open({str(tmp_path / 'pids' / 'one.pid')!r}).read())"
    )
    processes.launch("one", [sys.executable, "-c", look], {}, None)
    until((tmp_path / "seen").exists)
    until((tmp_path / "seen").read_text)
    pid = read_pid(tmp_path / "pids" / "one.pid")
    assert pid is not None
    assert (tmp_path / "seen").read_text().split()[0] == str(pid.number)


def test_a_number_that_is_anothers_by_now_is_not_hit(processes: RealProcesses) -> None:
    """A PID file whose number was reused is not alive, and ending it signals no process."""
    stranger = subprocess.Popen(SLEEP, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        now = lookup(stranger.pid)
        assert now is not None
        write_pid(
            processes.pids / "old.pid",
            ProcessId(now.number, now.started[:-1] + ("1" if now.started[-1] != "1" else "2")),
        )
        assert not processes.alive("old")
        processes.end("old", 0.0)
        assert processes.names() == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_one_that_ignores_being_asked_is_made_to(processes: RealProcesses, tmp_path: Path) -> None:
    """A process that ignores SIGTERM gets SIGKILL after the grace period, and its PID file is removed."""
    processes.launch("deaf", DEAF, {}, None)
    until(lambda: "up" in processes.output("deaf"))
    pid = processes.pid("deaf")
    assert pid is not None
    assert processes.end("deaf", 0.1) == -signal.SIGKILL
    assert not is_alive(pid)
    assert list((tmp_path / "pids").iterdir()) == []


def test_what_a_worker_started_goes_with_it(processes: RealProcesses, tmp_path: Path) -> None:
    """The child of a dead worker is ended with it."""
    code = f"import subprocess, os, sys; child = subprocess.Popen({SLEEP!r}); open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid)); os._exit(1)"
    processes.launch("parent", [sys.executable, "-c", code], {}, None)
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    until(lambda: not processes.alive("parent"))
    child = lookup(int((tmp_path / "child").read_text()))
    parent = processes.pid("parent")
    assert child is not None
    assert parent is not None
    assert is_group_alive(parent)
    processes.end("parent", 1.0)
    assert not is_alive(child)
    assert not is_group_alive(parent)


def test_one_that_stands_still_is_seen_and_can_be_ended(processes: RealProcesses) -> None:
    """A stopped process (SIGSTOP) is alive and can be ended."""
    processes.launch("still", SLEEP, {}, None)
    until(lambda: "up" in processes.output("still"))
    pid = processes.pid("still")
    assert pid is not None
    assert signal_group(pid, signal.SIGSTOP)
    until(lambda: Path(f"/proc/{pid.number}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    assert processes.alive("still")
    processes.end("still", LONG)
    assert not is_alive(pid)


def test_a_successor_knows_the_workers(processes: RealProcesses, tmp_path: Path) -> None:
    """Another conductor process finds live workers by their PID files."""
    processes.launch("one", SLEEP, {"RUNG_TASK": "task-01"}, tmp_path)
    ask = f"from rung.adapters.system.worker_processes import RealProcesses; from pathlib import Path; p = RealProcesses(Path({str(tmp_path)!r})); print(p.names(), p.alive('one')); p.end('one', 5); print(p.names())"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['one'] True", "[]"]
    until(lambda: not processes.alive("one"))


def test_a_killed_predecessor_is_not_taken_for_the_new_process(processes: RealProcesses) -> None:
    """The PID file that a killed process left is replaced before `launch` returns: the new process is alive at once."""
    for _ in range(30):  # the shell that writes the file may be faster than this process
        processes.launch("one", SLEEP, {}, None)
        assert processes.alive("one")
        pid = processes.pid("one")
        assert pid is not None
        assert signal_group(pid, signal.SIGKILL)
        until(lambda: not processes.alive("one"))


def test_a_zombie_is_dead() -> None:
    """A zombie process counts as gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: lookup(child.pid) is None)
    child.wait()


def test_a_file_one_cannot_read_is_nobodys(tmp_path: Path) -> None:
    """An empty or invalid PID file names no process and raises no error."""
    file = tmp_path / "x.pid"
    assert read_pid(file) is None
    for text in ("", "abc", "\x00\xff", "12"):
        file.write_text(text)
        found = read_pid(file)
        assert found is None or not is_alive(found)
    write_pid(file, current_process())
    assert read_pid(file) == current_process()
    assert current_process().number == os.getpid()
