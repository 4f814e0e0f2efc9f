"""Ending a blocking attempt whose time is up: for real, in the middle of whatever it is doing.

Main thread: one watchdog thread for the process sends a signal when an attempt is overdue, and its
    handler raises inside the attempt; that gets out of sleeps, reads and loops alike. Should other code put
    a handler of its own in the place of ours, that is noticed, said once, and attempts go the other way.
Other threads (or a system without the signal): no signal reaches them, so the attempt runs in a thread
    of its own and is left behind: control comes back on time, and what the straggler returns is ignored.
    It is not asked to end (PyThreadState_SetAsyncExc): while it blocks, the request stays pending and hangs
    every other thread that is traced, by a debugger or by coverage, in Python 3.11.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from rung.core.domain.errors import AttemptTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.breaker import Breaker

T = TypeVar("T")

# As it is in C: the public one makes enums of what is none first, and that costs more than the rest of an attempt.
getsignal: Final[Callable[[int], Any]] = signal._signal.getsignal  # type: ignore[attr-defined]  # noqa: SLF001

# Ignored by default, hardly used by anybody, and a handler for it ends blocking calls.
SIGNAL: Final = getattr(signal, "SIGURG", None)
MAIN: Final = threading.main_thread().ident
# The watchdog looks at least this often, so an attempt with a longer limit need not wake it.
LOOK_EVERY: Final = 5.0
# What an attempt does in its `finally` when it is ended has so long, before it is ended once more.
INSIST_EVERY: Final = 1.0
_NEVER: Final = float("inf")


class AttemptInterrupt(BaseException):
    """Raised inside an attempt by the watchdog. No Exception, so that an agent's catch-all cannot eat it.

    `depth` says whose time is up: attempts can be nested, and the outermost overdue one is ended.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__("time is up")


class TimeoutWatchdog:
    """Watches the attempts of the main thread.

    `due` holds the time at which each running attempt is overdue, outermost first. Only the main thread
    changes it, and the signal handler runs in the main thread: so there is nothing to lock, and an
    attempt that has just ended can never be hit by a late signal.
    """

    def __init__(self) -> None:
        self.due: list[float] = []
        self._wakes_at = _NEVER
        self._insists_at = 0.0
        # Held while the watchdog may sleep. An Event has a lock in Python code, and an Overdue that comes
        # while it is taken would leave it taken: nobody could wake the watchdog any more.
        self._sleeps = threading.Lock()
        self._thread: threading.Thread | None = None
        self._former: Any = None
        self._handler: Any = None
        self._homes: WeakSet[Breaker] = WeakSet()
        self._said = False  # that somebody has taken our signal

    def start(self) -> None:
        """Begin to watch; called in the main thread. Does nothing when it already does."""
        if self._thread is not None:
            return
        assert SIGNAL is not None  # noqa: S101  # the callers have looked
        self._handler = self._handle
        former = signal.signal(SIGNAL, self._handler)
        self._former = former if callable(former) else None
        self._begin()
        os.register_at_fork(after_in_child=self.begin_in_child)

    @property
    def displaced(self) -> bool:
        """Has somebody else taken our signal? Then nobody in the main thread can be ended by it."""
        return self._thread is not None and getsignal(SIGNAL or 0) != self._handle

    def ready(self) -> bool:
        """Whether it watches, with its own signal handler in place since it last warned."""
        return self._thread is not None and not self._said and getsignal(SIGNAL or 0) is self._handler

    def warn(self, *, displaced: bool) -> None:
        """Warn, once for each time that it happens."""
        if displaced and not self._said:
            warnings.warn(
                "rung: another handler was put in the place of ours for SIGURG; time limits in the main thread now"
                " end attempts by leaving them behind in a thread",
                RuntimeWarning,
                stacklevel=2,
            )
        self._said = displaced

    def register(self, breaker: Breaker) -> None:
        """Calls of this breaker need not ask in the main thread, as long as we can end them."""
        self.start()
        self._homes.add(breaker)
        breaker.fast_path_thread = MAIN

    def wake_before(self, due: float) -> None:
        """Do not sleep past this."""
        if due < self._wakes_at:
            try:
                self._sleeps.release()
            except RuntimeError:
                return  # it is already waking up

    def _begin(self) -> None:
        self._sleeps = threading.Lock()
        self._sleeps.acquire()
        self._thread = threading.Thread(target=self._watch, name="rung-watchdog", daemon=True)
        self._thread.start()

    def begin_in_child(self) -> None:
        """Watch in a forked process: it is not its parent's attempt, and lives on when that one's time is up."""
        self.due[:] = [_NEVER] * len(self.due)
        self._begin()

    def _watch(self) -> None:
        looked = 0.0
        while True:
            self._wakes_at = _NEVER  # whoever begins while we look may not be seen: it has to wake us
            now = monotonic()
            due = self.due.copy()
            soon = [at for at in due if at > now]
            if self.displaced:
                self._evict()
            elif len(soon) < len(due):
                if now >= self._insists_at or any(looked < at <= now for at in due):
                    self._insists_at = now + INSIST_EVERY
                    signal.pthread_kill(MAIN or 0, SIGNAL or 0)
                soon.append(self._insists_at)
            looked = now
            self._wakes_at = wakes_at = min([now + LOOK_EVERY, *soon])
            self._sleeps.acquire(timeout=max(0.0, wakes_at - now))

    def _evict(self) -> None:
        """All calls have to ask from now on, and are told that their limits need a thread."""
        for breaker in self._homes.copy():
            breaker.fast_path_thread = None

    def _handle(self, number: int, frame: Any) -> None:
        now = monotonic()
        if _releasing(frame):
            self._insists_at = 0.0  # once more, at once
            self.wake_before(0.0)
        else:
            for depth, due in enumerate(self.due):
                if due <= now:
                    raise AttemptInterrupt(depth)
        if self._former is not None:
            self._former(number, frame)


WATCHDOG: Final = TimeoutWatchdog()


def in_main() -> bool:
    """Can an attempt of this thread be ended by a signal?"""
    if SIGNAL is None or threading.get_ident() != MAIN:
        return False
    displaced = WATCHDOG.displaced
    WATCHDOG.warn(displaced=displaced)
    return not displaced


def limited(function: Callable[..., T], arguments: tuple[Any, ...], seconds: float | None) -> T:
    """Call it, and raise TimeUp when it has not come back in so many seconds."""
    if seconds is None:
        return function(*arguments)
    if threading.get_ident() != MAIN or not WATCHDOG.ready():
        if not in_main():
            return _in_a_thread(function, arguments, seconds)
        WATCHDOG.start()
    due = monotonic() + seconds
    try:
        WATCHDOG.due.append(due)
        if seconds < LOOK_EVERY:
            WATCHDOG.wake_before(due)
        value = function(*arguments)
        WATCHDOG.due.pop()
        return value
    except AttemptInterrupt as overdue:
        if release(due) != overdue.depth:
            raise
        raise AttemptTimeout(seconds) from None
    except BaseException:
        release(due)
        raise


def release(due: float) -> int:
    """Stop watching this very attempt, and any inside it; returns its depth, -1 if it was not watched."""
    watched = WATCHDOG.due
    if watched and watched[-1] is due:
        watched.pop()
        return len(watched)
    for depth in range(len(watched) - 1, -1, -1):
        if watched[depth] is due:
            del watched[depth:]
            return depth
    return -1


def _releasing(frame: Any) -> bool:
    """Has an attempt just ended? Raising there would leave it watched for ever."""
    while frame is not None and frame.f_code is not release.__code__:
        frame = frame.f_back
    return frame is not None


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
    ended.wait(seconds)
    if not box:
        raise AttemptTimeout(seconds)
    good, value = box.pop()
    if good:
        return value  # type: ignore[no-any-return]  # what the function returned
    try:
        raise value
    finally:
        del value  # its traceback holds this frame: a cycle, and work for the collector
