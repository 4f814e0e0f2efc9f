"""Waiting for a child process that a signal may interrupt at any point."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from rung.adapters.system.attached_process import run_attached
from rung.adapters.system.child_processes import exit_code, wait_for_exit
from rung.adapters.system.process import RunningProcess
from rung.adapters.system.process_guardian import deferred_signals
from rung.core.domain.errors import AttemptTimeout
from tests.waiting import wait_until

DEAF = "trap '' TERM; echo ready; sleep 60 & wait"


def interrupted(script: str) -> RunningProcess:
    """A running command after a signal between `acquire` and `try` has left the lock of its Popen held."""
    process = RunningProcess(["sh", "-c", script], "")
    process.process._waitpid_lock.acquire()  # type: ignore[attr-defined]  # noqa: SLF001
    return process


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9)])
def test_the_exit_code_is_known_without_the_lock(script: str, code: int) -> None:
    """A command that ends after an interrupted wait is seen to end, with its exit code or signal."""
    assert interrupted(script).completed().code == code


def test_a_time_limit_kills_without_the_lock() -> None:
    """A command that ignores SIGTERM is killed at its time limit after an interrupted wait; nothing hangs."""
    process = interrupted(DEAF)
    wait_until(lambda: "ready" in process._output._head.decode())  # noqa: SLF001  # `output_text` waits for its end
    with pytest.raises(AttemptTimeout):
        process.completed(0.2)
    assert exit_code(process.process) == -signal.SIGKILL


def test_a_process_that_another_thread_has_reaped_keeps_its_code() -> None:
    """The exit code is the one that was read first."""
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    assert process.wait() == 3
    assert wait_for_exit(process) == 3


def test_an_attached_command_returns_its_signal() -> None:
    """The code of a command that keeps the standard streams is negative after a signal."""
    assert run_attached(["sh", "-c", "kill -TERM $$"], {}) == -signal.SIGTERM


def test_a_handler_left_in_place_passes_signals_on() -> None:
    """If an exception interrupts the end of a deferral, later signals still reach the handlers of before."""
    seen: list[int] = []
    previous = signal.signal(signal.SIGHUP, lambda number, _: seen.append(number))
    try:
        with deferred_signals():
            left = signal.getsignal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)
            assert seen == []
        assert seen == [signal.SIGHUP]
        signal.signal(signal.SIGHUP, left)
        signal.raise_signal(signal.SIGHUP)
        assert seen == [signal.SIGHUP, signal.SIGHUP]
    finally:
        signal.signal(signal.SIGHUP, previous)
