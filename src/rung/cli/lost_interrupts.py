"""Ctrl-C that Python loses: an interrupt in a finalizer or a callback of the garbage collector is printed and ignored."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_DELAY_SECONDS: Final = 0.05  # the finalizer has ended by then


def deliver_lost_interrupts() -> None:
    """Deliver such an interrupt again, shortly afterwards: the command was asked to stop."""
    show = sys.unraisablehook

    def hook(unraisable: UnraisableHookArgs, /) -> None:
        number = _signal_of(unraisable.exc_value)
        if number is None:
            show(unraisable)
            return
        timer = threading.Timer(_DELAY_SECONDS, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook


def _signal_of(error: BaseException | None) -> int | None:
    """Return the signal whose exception this is; None for another exception."""
    if not isinstance(error, KeyboardInterrupt):
        return None
    number = getattr(error, "exit_code", 128 + signal.SIGINT) - 128
    return number if number != getattr(signal, "SIGPIPE", None) else None  # an output that nobody reads any more
