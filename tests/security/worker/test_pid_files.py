"""PID files: one number, for `kill $(cat FILE)`; and nothing that is not ours is ever signalled."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.pid_file import read_pid, write_pid
from rung.adapters.system.worker_processes import RealProcesses
from rung.core.domain.errors import ConfigError
from rung.engine.process_identity import current_process, is_alive, lookup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEP = ("sleep", "600")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[RealProcesses]:
    """Processes with their files in a directory of the test."""
    made = RealProcesses(tmp_path)
    yield made
    for name in ("one", "two"):
        made.end(name, 0.0)


def started(processes: RealProcesses, name: str = "one") -> int:
    processes.launch(name, SLEEP, {}, None)
    pid = processes.pid(name)
    assert pid is not None
    return pid.number


def test_a_pid_file_holds_one_number(processes: RealProcesses) -> None:
    """The file of a worker, and that which a running process writes for itself, hold the number and nothing else."""
    number = started(processes)
    assert processes.pid_file("one").read_text() == f"{number}\n"
    write_pid(processes.pids / "conductor.pid", current_process())
    assert (processes.pids / "conductor.pid").read_text() == f"{os.getpid()}\n"


def test_the_kill_of_the_protocol_hits_that_process_alone(processes: RealProcesses) -> None:
    """`kill $(cat FILE)` in a group of its own ends the worker, and neither the shell nor a process beside it."""
    number = started(processes)
    shell = f"sleep 600 & kill $(cat '{processes.pid_file('one')}') && echo shell-lives && kill -0 $! && echo other-lives; kill $!"
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=False, start_new_session=True)
    assert done.stdout.split() == ["shell-lives", "other-lives"], done
    until = time.monotonic() + 60
    while processes.alive("one"):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert lookup(number) is None


@pytest.mark.parametrize("number", ["0", "1", "-1", "²", "٣", "12x", "", "99999999999999999999", "4294967296000"])
def test_a_number_that_is_no_process_is_nobody(processes: RealProcesses, tmp_path: Path, number: str) -> None:
    """Zero, one, negative and foreign digits name no process: they are neither alive nor signalled, and raise nothing."""
    for text in (number, f"{number} x y", f"{number}\n"):
        (tmp_path / "pids" / "one.pid").write_text(text)
        (tmp_path / "pids" / "one.start").write_text(f"{number} x y\n")
        assert read_pid(tmp_path / "pids" / "one.pid") is None
        assert not processes.alive("one")
        processes.end("one", 0.0)


def test_a_forged_file_kills_nobody(processes: RealProcesses) -> None:
    """A file that names a process with the right start time, which this crew did not start, signals nothing and tells it."""
    victim = subprocess.Popen(SLEEP, start_new_session=True)
    try:
        identity = lookup(victim.pid)
        assert identity is not None
        write_pid(processes.pids / "one.pid", identity)
        processes.end("one", 0.0)
        assert victim.poll() is None
        assert "is not signalled" in processes.output("one")
    finally:
        victim.kill()
        victim.wait()


def test_the_file_of_one_worker_does_not_end_another(processes: RealProcesses, tmp_path: Path) -> None:
    """A worker that copies another's number into its own file has nothing signalled, by this conductor or the next."""
    number = started(processes, "two")
    identity = lookup(number)
    assert identity is not None
    write_pid(processes.pids / "one.pid", identity)
    RealProcesses(tmp_path).end("one", 0.0)
    assert is_alive(identity)


def test_the_next_conductor_ends_what_the_last_one_started(processes: RealProcesses, tmp_path: Path) -> None:
    """A worker is known as ours by its environment, although another process launched it."""
    number = started(processes)
    identity = lookup(number)
    assert identity is not None
    RealProcesses(tmp_path).end("one", 0.0)
    assert not is_alive(identity)


def test_a_pipe_for_a_file_blocks_nobody(processes: RealProcesses, tmp_path: Path) -> None:
    """A FIFO in place of a PID file names no process."""
    os.mkfifo(tmp_path / "pids" / "one.pid")
    assert not processes.alive("one")
    processes.end("one", 0.0)


@pytest.mark.parametrize("suffix", ["pids/one.pid", "pids/one.pid.new", "pids/one.start"])
def test_nothing_is_written_through_a_link(processes: RealProcesses, tmp_path: Path, suffix: str) -> None:
    """Links that lie where the files of a launch go are replaced; what they lead to stays as it is."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / suffix).symlink_to(outside)
    started(processes)
    assert outside.read_text() == "mine"


def test_no_log_is_written_through_a_link(processes: RealProcesses, tmp_path: Path) -> None:
    """A link in place of the log fails the launch."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "logs" / "one.log").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        processes.launch("one", ("echo", "x"), {}, None)
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "a\0b"])
def test_a_name_is_the_name_of_a_file(processes: RealProcesses, name: str) -> None:
    """A name that leads out of the directory is refused."""
    with pytest.raises(ConfigError, match="the name of a file"):
        processes.launch(name, SLEEP, {}, None)
