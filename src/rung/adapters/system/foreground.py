"""A command in the foreground of the terminal: it reads the keyboard and gets Ctrl-C and Ctrl-Z, as in a shell."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from rung.adapters.system.child_processes import wait_for_exit

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

POLL_SECONDS: Final = 0.05
# A command that ends by one of these was ended at the terminal: Ctrl-C, Ctrl-\ or a closed window.
TERMINAL_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGQUIT", "SIGHUP") if hasattr(signal, name)
)


def is_foreground(descriptor: int) -> bool:
    """Return whether the descriptor is a terminal and this process is in its foreground."""
    try:
        return os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


def has_terminal() -> bool:
    """Return whether this process has a terminal, whose Ctrl-C reaches its whole process group in the foreground."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


@contextmanager
def foreground(process: subprocess.Popen[bytes], descriptor: int) -> Iterator[None]:
    """Put the command's process group into the foreground, and this process back into it afterwards."""
    _give_terminal(descriptor, process.pid)
    try:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)  # it may have stopped because it read before
        yield
    finally:
        _give_terminal(descriptor, os.getpgrp())


def wait_in_foreground(process: subprocess.Popen[bytes], descriptor: int) -> int:
    """Wait for the end of the command and return its exit code. If it is stopped by Ctrl-Z, this process stops, too."""
    options = os.WEXITED | os.WSTOPPED | os.WNOWAIT | os.WNOHANG
    while (found := os.waitid(os.P_PID, process.pid, options)) is None or found.si_code == os.CLD_STOPPED:
        if found is None:
            time.sleep(POLL_SECONDS)
            continue
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG)
        _give_terminal(descriptor, os.getpgrp())
        os.killpg(os.getpgrp(), signal.SIGTSTP)  # returns when the shell continues this process
        _give_terminal(descriptor, process.pid)
        os.killpg(process.pid, signal.SIGCONT)
    return wait_for_exit(process)


def _give_terminal(descriptor: int, group: int) -> None:
    previous = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGTTOU}
    )  # it would stop a background process that does this
    try:
        with suppress(OSError):  # the terminal is gone
            os.tcsetpgrp(descriptor, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
