"""Signals that ask a command of ours to end: SIGTERM and SIGHUP stop a run as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.process_guardian import ENDING_SIGNALS
from rung.cli.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterator


_HANGUP: Final = getattr(signal, "SIGHUP", None)  # Windows has none


class EndRequested(KeyboardInterrupt):
    """Raised in the main thread by a signal; handled wherever Ctrl-C is."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number  # as a shell reports it


def exit_code_of(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that Ctrl-C, a signal or a closed pipe has stopped."""
    return int(getattr(stop, "exit_code", INTERRUPTED))


def _leave_lost_terminal() -> None:
    """Let output to a terminal that was closed vanish: an error at each write would hide how the run ended."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)


@contextmanager
def ending_signals() -> Iterator[None]:
    """Raise EndRequested for SIGTERM and SIGHUP in the block. A signal that is ignored, as under nohup, stays so."""

    def end(number: int, _: Any) -> None:
        if number == _HANGUP:
            _leave_lost_terminal()
        raise EndRequested(number)

    handled = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, end) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
