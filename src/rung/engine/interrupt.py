"""Ending an attempt whose time is up: for real, in the middle of whatever it is doing.

async: a timer, armed only once the attempt really waits for something.
sync, main thread: one watchdog thread for the process sends a signal, whose handler raises inside the
    attempt; it gets out of sleeps, reads and loops alike.
sync, other threads (or no such signal): no signal reaches them, so the attempt runs in a thread of its
    own and is left behind: control comes back on time, and what the straggler returns is ignored.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.errors import TimeUp

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Ignored by default, used by nobody for anything that matters here, and it ends blocking calls.
SIGNAL: Final = getattr(signal, "SIGURG", None)
MAIN: Final = threading.main_thread().ident

_IDLE: Final = 5.0
_LONGEST: Final = 3600.0


class Overdue(BaseException):
    """Raised inside an attempt by its watchdog. Not an Exception, so that an agent's catch-all cannot eat it."""

    def __init__(self, key: int) -> None:
        self.key = key
        super().__init__("time is up")


class Watchdog:
    """Watches the attempts of the main thread. Arming and disarming one is a dict entry each."""

    def __init__(self) -> None:
        self.armed: dict[int, float] = {}
        self.claimed: deque[int] = deque()
        self.wakes_at = float("inf")
        self.keys = count()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._former: Any = None

    def hurry(self, due: float) -> None:
        """Wake up in time for this one; starts the thread the first time."""
        self.wakes_at = due
        if self._thread is None or not self._thread.is_alive():
            assert SIGNAL is not None  # noqa: S101  # call() has looked
            self._former = signal.signal(SIGNAL, self._handle)
            self._thread = threading.Thread(target=self._watch, name="rung-watchdog", daemon=True)
            self._thread.start()
        self._wake.set()

    def _watch(self) -> None:
        while True:
            self._wake.wait(min(max(0.0, self.wakes_at - monotonic()), _LONGEST))
            self._wake.clear()
            now = monotonic()
            for key, due in list(self.armed.items()):
                # Whoever pops the entry owns the ending: the attempt that finished, or we.
                if due <= now and self.armed.pop(key, None) is not None:
                    self.claimed.append(key)
                    signal.pthread_kill(MAIN or 0, SIGNAL or 0)
            # With nothing armed, look again in a while: the next attempt then needs no waking.
            self.wakes_at = min(self.armed.values(), default=now + _IDLE)

    def _handle(self, number: int, frame: Any) -> None:
        if self.claimed:
            raise Overdue(self.claimed.popleft())
        if callable(self._former):
            self._former(number, frame)


WATCHDOG: Final = Watchdog()


def limited(function: Callable[..., T], arguments: tuple[Any, ...], seconds: float | None) -> T:
    """Call it, and raise TimeUp when it has not come back in so many seconds."""
    if seconds is None:
        return function(*arguments)
    if seconds <= 0:
        raise TimeUp(0.0)
    if SIGNAL is None or threading.get_ident() != MAIN:
        return _in_a_thread(function, arguments, seconds)
    dog = WATCHDOG
    key = next(dog.keys)
    due = monotonic() + seconds
    dog.armed[key] = due
    if due < dog.wakes_at:
        dog.hurry(due)
    try:
        try:
            return function(*arguments)
        finally:
            disarm(key)
    except Overdue as overdue:
        if overdue.key != key:
            raise
        raise TimeUp(seconds) from None


def disarm(key: int) -> None:
    """The attempt is over. If its signal is already on its way, let it arrive here and not later."""
    if WATCHDOG.armed.pop(key, None) is None:
        while key in WATCHDOG.claimed:
            pass


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
    good, value = box[0]
    if good:
        return value  # type: ignore[no-any-return]  # what the function returned
    raise value


def _abandon(thread: threading.Thread) -> None:
    """Ask the straggler to end at its next step of Python code."""
    import ctypes

    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
