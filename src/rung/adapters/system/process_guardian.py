"""Guardian of a running command: a shell that ends the command's process group when this process is gone.

A signal handler cannot do that: nothing runs in a process that was killed by SIGKILL. The guardian reads from a pipe whose
other end only this process holds, so that its end is seen however this process ended.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

# Besides Ctrl-C, these ask a process to end. Windows has no SIGHUP.
ENDING_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
# First the group to guard, then a word when the command has ended. An end of the input instead means: this process is gone.
_SCRIPT: Final = """\
trap '' HUP INT TERM
read -r group && ! read -r word || exit 0
kill -s TERM -- "-$group"
for second in 1 2; do kill -s 0 -- "-$group" || exit 0; sleep 1; done
kill -s KILL -- "-$group"
"""


class ProcessGuardian:
    """A guardian; started before the command, so that there is no moment without it.

    A guardian that is closed before it was released ends the command.
    """

    def __init__(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603  # our own script
            ["/bin/sh", "-c", _SCRIPT, "rung-guardian"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def watch(self, group: int) -> None:
        """Guard the process group of a command that was just started."""
        self._write(f"{group}\n")

    def release(self) -> None:
        """End the guardian: the command has ended, was ended, or could not be started."""
        self._write("done\n")
        self._close()

    def _close(self) -> None:
        with suppress(OSError):
            assert self._shell.stdin is not None  # noqa: S101  # opened as a pipe
            self._shell.stdin.close()
        self._shell.wait()

    def _write(self, text: str) -> None:
        assert self._shell.stdin is not None  # noqa: S101  # opened as a pipe
        with suppress(OSError, ValueError):  # the guardian was ended by somebody, or released before
            self._shell.stdin.write(text.encode())
            self._shell.stdin.flush()


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Handle SIGINT, SIGTERM and SIGHUP after the block instead of in it. Only the main thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    is_deferring = True

    def remember(number: int, frame: Any) -> None:
        if is_deferring:
            pending.append(number)
        else:  # an exception has left this handler in place
            deferred[signal.Signals(number)](number, frame)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING_SIGNALS)}
    deferred = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in deferred:
        signal.signal(number, remember)
    try:
        yield
    finally:
        is_deferring = False
        for number, handler in deferred.items():
            signal.signal(number, handler)
    for pended in pending:
        deferred[signal.Signals(pended)](pended, None)
