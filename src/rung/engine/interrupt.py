"""Ending a blocking attempt whose time is up: for real, in the middle of whatever it is doing.

Main thread: one watchdog thread for the process sends a signal when an attempt is overdue, and its
    handler raises inside the attempt; that gets out of sleeps, reads and loops alike.
Other threads (or a system without the signal): no signal reaches them, so the attempt runs in a thread
    of its own and is left behind: control comes back on time, and what the straggler returns is ignored.
"""

from __future__ import annotations

import os
import signal
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.errors import TimeUp

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Ignored by default, hardly used by anybody, and a handler for it ends blocking calls.
SIGNAL: Final = getattr(signal, "SIGURG", None)
MAIN: Final = threading.main_thread().ident
# The watchdog looks at least this often, so an attempt with a longer limit need not wake it.
LOOK_EVERY: Final = 5.0
_INSIST_EVERY: Final = 0.01
_NEVER: Final = float("inf")


class Overdue(BaseException):
    """Raised inside an attempt by the watchdog. No Exception, so that an agent's catch-all cannot eat it.

    `depth` says whose time is up: attempts can be nested, and the outermost overdue one is ended.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__("time is up")


class Watchdog:
    """Watches the attempts of the main thread.

    `due` holds the time at which each running attempt is overdue, outermost first. Only the main thread
    changes it, and the signal handler runs in the main thread: so there is nothing to lock, and an
    attempt that has just ended can never be hit by a late signal.
    """

    def __init__(self) -> None:
        self.due: list[float] = []
        self._wakes_at = _NEVER
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._former: Any = None

    def start(self) -> None:
        """Begin to watch; called in the main thread. Does nothing when it already does."""
        if self._thread is not None:
            return
        assert SIGNAL is not None  # noqa: S101  # the callers have looked
        former = signal.signal(SIGNAL, self._handle)
        self._former = former if callable(former) else None
        self._begin()
        os.register_at_fork(after_in_child=self._begin_in_child)

    def hurry(self, due: float) -> None:
        """Do not sleep past this."""
        if due < self._wakes_at:
            self._wake.set()

    def _begin(self) -> None:
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rung-watchdog", daemon=True)
        self._thread.start()

    def _begin_in_child(self) -> None:
        # A process forked inside an attempt is not that attempt: it may live on when its time is up.
        self.due[:] = [_NEVER] * len(self.due)
        self._begin()

    def _watch(self) -> None:
        while True:
            self._wakes_at = _NEVER  # whoever begins while we look may not be seen: it has to wake us
            now = monotonic()
            first = min(self.due, default=_NEVER)
            if first <= now:
                signal.pthread_kill(MAIN or 0, SIGNAL or 0)
            pause = min(LOOK_EVERY, max(first - now, _INSIST_EVERY))
            self._wakes_at = now + pause
            self._wake.wait(pause)
            self._wake.clear()

    def _handle(self, number: int, frame: Any) -> None:
        now = monotonic()
        if frame is None or frame.f_code is not release.__code__:  # there, one has just ended: too late for it
            for depth, due in enumerate(self.due):
                if due <= now:
                    raise Overdue(depth)
        if self._former is not None:
            self._former(number, frame)


WATCHDOG: Final = Watchdog()


def in_main() -> bool:
    """Can an attempt of this thread be ended by a signal?"""
    return SIGNAL is not None and threading.get_ident() == MAIN


def limited(function: Callable[..., T], arguments: tuple[Any, ...], seconds: float | None) -> T:
    """Call it, and raise TimeUp when it has not come back in so many seconds."""
    if seconds is None:
        return function(*arguments)
    if not in_main():
        return _in_a_thread(function, arguments, seconds)
    WATCHDOG.start()
    due = monotonic() + seconds
    try:
        WATCHDOG.due.append(due)
        WATCHDOG.hurry(due)
        value = function(*arguments)
    except Overdue as overdue:
        if release(due) != overdue.depth:
            raise
        raise TimeUp(seconds) from None
    except BaseException:
        release(due)
        raise
    release(due)
    return value


def release(due: float) -> int:
    """Stop watching this very attempt, and any inside it; returns its depth, -1 if it was not watched."""
    watched = WATCHDOG.due
    for depth in range(len(watched) - 1, -1, -1):
        if watched[depth] is due:
            del watched[depth:]
            return depth
    return -1


def _in_a_thread(function: Callable[..., T], arguments: tuple[Any, ...], seconds: float) -> T:
    from contextvars import copy_context

    context = copy_context()
    ended = threading.Event()
    box: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            box.append((True, context.run(function, *arguments)))
        except BaseException as error:  # handed to the waiting caller, whatever it is
            box.append((False, error))
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="rung-attempt", daemon=True)
    thread.start()
    try:
        ended.wait(seconds)
    except BaseException:
        _abandon(thread)
        raise
    if not box:
        _abandon(thread)
        raise TimeUp(seconds)
    good, value = box.pop()
    if good:
        return value  # type: ignore[no-any-return]  # what the function returned
    try:
        raise value
    finally:
        del value  # its traceback holds this frame: a cycle, and work for the collector


def _abandon(thread: threading.Thread) -> None:
    """Ask the straggler to end at its next step of Python code."""
    import ctypes

    if thread.is_alive() and thread.ident is not None:  # else its ident may be another thread's by now
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
