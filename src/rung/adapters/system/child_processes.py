"""Waiting for a child process in a thread in which signals raise.

`subprocess.Popen.wait` holds a lock while it asks for the exit code. An exception that a signal handler raises at the wrong
moment leaves that lock held, and the next `wait()` without a time limit never returns. Nothing here takes that lock.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, overload

if TYPE_CHECKING:
    import subprocess

FIRST_PAUSE_SECONDS: Final = 0.0005
MAX_PAUSE_SECONDS: Final = 0.05


def exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code of a child process, or None while it runs. A negative code is the signal that killed it."""
    if process.returncode is not None or not hasattr(os, "waitid"):  # macOS before Python 3.13, Windows
        return process.poll()
    try:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # another thread has just reaped it
        return process.poll()
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


@overload
def wait_for_exit(process: subprocess.Popen[bytes]) -> int: ...
@overload
def wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> int | None: ...
def wait_for_exit(process: subprocess.Popen[bytes], seconds: float | None = None) -> int | None:
    """Wait for the end of a child process and return its exit code, or None if it still runs after `seconds`."""
    until = None if seconds is None else time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while (code := exit_code(process)) is None:
        left = pause if until is None else until - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(pause, left))
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
    _reap(process, code)
    return code


def _reap(process: subprocess.Popen[bytes], code: int) -> None:
    if process.poll() is None:  # its lock was left held
        with suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
        process.returncode = code
