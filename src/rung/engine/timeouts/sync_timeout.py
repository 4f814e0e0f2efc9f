"""Time limits of blocking attempts: an overdue attempt is interrupted, whatever it is doing.

Main thread: one watchdog thread for the process sends a signal when an attempt is overdue, and the signal handler
    raises inside the attempt. That interrupts sleeps, reads and loops. If other code replaces the handler, a warning is
    emitted once, and attempts take the second way.
Other threads (or a system without the signal): a signal cannot interrupt them. The attempt runs in its own thread,
    which is abandoned on timeout: the caller regains control on time, and the late result is ignored. The thread is
    not interrupted with PyThreadState_SetAsyncExc: while it blocks, the exception stays pending and, in Python 3.11,
    hangs every other thread that is traced by a debugger or by coverage.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakSet

from rung.core.domain.errors import AttemptStalled, AttemptTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.breaker import Breaker
    from rung.engine.timeouts.patience import Patience

T = TypeVar("T")

# The C function: the public wrapper converts to enums, which costs more than the rest of an attempt.
getsignal: Final[Callable[[int], Any]] = signal._signal.getsignal  # type: ignore[attr-defined]  # noqa: SLF001

# SIGURG is ignored by default and rarely used, and a handler for it interrupts blocking calls.
INTERRUPT_SIGNAL: Final = getattr(signal, "SIGURG", None)
MAIN_THREAD_ID: Final = threading.main_thread().ident
# The watchdog polls at least this often, so an attempt with a longer limit need not wake it.
WATCHDOG_POLL_SECONDS: Final = 5.0
# Time for the `finally` blocks of an interrupted attempt, before it is interrupted again.
RESIGNAL_SECONDS: Final = 1.0
# An attempt that is overdue while it writes a log record is interrupted after the record, or after this time.
LOG_GRACE_SECONDS: Final = 1.0
_DEFERRED_SECONDS: Final = 0.005
_NEVER: Final = float("inf")


class AttemptInterrupt(BaseException):
    """Raised inside an overdue attempt. Not an Exception, so that `except Exception` in an agent cannot swallow it.

    Attempts can be nested; `depth` is the position of the outermost overdue one.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__("attempt timed out")


class TimeoutWatchdog:
    """Enforces the time limits of attempts in the main thread.

    `deadlines` holds the deadline of each running attempt, outermost first. Only the main thread changes it, and the
    signal handler runs in the main thread: so no lock is needed, and a late signal cannot hit an attempt that has
    just ended.
    """

    def __init__(self) -> None:
        self.deadlines: list[float] = []
        # Deadlines that move with the progress of their attempt, by identity. The entry keeps its deadline alive.
        self._moving: dict[int, tuple[float, Callable[[], float]]] = {}
        self._wake_at = _NEVER
        self._resignal_at = 0.0
        # Held while the watchdog may sleep. An Event has a lock in Python code, and an AttemptInterrupt raised while
        # it is held would leave it locked: nothing could wake the watchdog again.
        self._sleep_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._previous_handler: Any = None
        self._handler: Any = None
        self._breakers: WeakSet[Breaker] = WeakSet()
        self._has_warned = False  # about a replaced signal handler

    def start(self) -> None:
        """Start the watchdog thread, from the main thread. Does nothing if it runs already."""
        if self._thread is not None:
            return
        assert INTERRUPT_SIGNAL is not None  # noqa: S101  # the callers have checked
        self._handler = self._on_signal
        former = signal.signal(INTERRUPT_SIGNAL, self._handler)
        self._previous_handler = former if callable(former) else None
        self._start_thread()
        os.register_at_fork(after_in_child=self.restart_in_child)

    @property
    def is_displaced(self) -> bool:
        """Whether other code has replaced the signal handler, so that the main thread cannot be interrupted."""
        return self._thread is not None and getsignal(INTERRUPT_SIGNAL or 0) != self._on_signal

    def is_ready(self) -> bool:
        """Return whether the watchdog runs with its own signal handler in place."""
        return self._thread is not None and not self._has_warned and getsignal(INTERRUPT_SIGNAL or 0) is self._handler

    def warn(self, *, displaced: bool) -> None:
        """Warn about a replaced signal handler, once for each replacement."""
        if displaced and not self._has_warned:
            warnings.warn(
                "rung: the SIGURG handler was replaced; an attempt in the main thread that times out is now abandoned"
                " in a thread",
                RuntimeWarning,
                stacklevel=2,
            )
        self._has_warned = displaced

    def register(self, breaker: Breaker) -> None:
        """Let calls with this breaker take the fast path in the main thread while the watchdog can interrupt them."""
        self.start()
        self._breakers.add(breaker)
        breaker.fast_path_thread = MAIN_THREAD_ID

    def move(self, deadline: float, current: Callable[[], float]) -> None:
        """Let a deadline be what `current` returns, from now on."""
        self._moving[id(deadline)] = (deadline, current)

    def stop_moving(self, deadline: float) -> None:
        """Forget a deadline that moves."""
        self._moving.pop(id(deadline), None)

    def _moved(self, deadline: float) -> float:
        moving = self._moving.get(id(deadline)) if self._moving else None
        return deadline if moving is None else moving[1]()

    def wake_before(self, deadline: float) -> None:
        """Wake the watchdog if it would sleep past this deadline."""
        if deadline < self._wake_at:
            try:
                self._sleep_lock.release()
            except RuntimeError:
                return  # it is already awake

    def _start_thread(self) -> None:
        self._sleep_lock = threading.Lock()
        self._sleep_lock.acquire()
        self._thread = threading.Thread(target=self._watch, name="rung-watchdog", daemon=True)
        self._thread.start()

    def restart_in_child(self) -> None:
        """Restart in a forked process. The deadlines of the parent's attempts do not apply to the child."""
        self.deadlines[:] = [_NEVER] * len(self.deadlines)
        self._start_thread()

    def _watch(self) -> None:
        last_poll = 0.0
        while True:
            self._wake_at = _NEVER  # an attempt that starts during this round may be missed: it must wake the watchdog
            now = monotonic()
            deadlines = [self._moved(at) for at in self.deadlines.copy()]
            soon = [at for at in deadlines if at > now]
            if self.is_displaced:
                self._disable_fast_paths()
            elif len(soon) < len(deadlines):
                if now >= self._resignal_at or any(last_poll < at <= now for at in deadlines):
                    self._resignal_at = now + RESIGNAL_SECONDS
                    signal.pthread_kill(MAIN_THREAD_ID or 0, INTERRUPT_SIGNAL or 0)
                soon.append(self._resignal_at)
            last_poll = now
            self._wake_at = wakes_at = min([now + WATCHDOG_POLL_SECONDS, *soon])
            self._sleep_lock.acquire(timeout=max(0.0, wakes_at - now))

    def _disable_fast_paths(self) -> None:
        """Make all guarded calls leave the fast path, because they cannot be interrupted any more."""
        for breaker in self._breakers.copy():
            breaker.fast_path_thread = None

    def _on_signal(self, number: int, frame: Any) -> None:
        now = monotonic()
        if _is_unwatching(frame):
            self._signal_again(0.0)  # at once
        else:
            for depth, deadline in enumerate(self.deadlines):
                if deadline <= now and (end := self._moved(deadline)) <= now:
                    if now - end > LOG_GRACE_SECONDS or not _is_logging(frame):
                        raise AttemptInterrupt(depth)
                    self._signal_again(now + _DEFERRED_SECONDS)
                    break
        if self._previous_handler is not None:
            self._previous_handler(number, frame)

    def _signal_again(self, at: float) -> None:
        self._resignal_at = at
        self.wake_before(0.0)


WATCHDOG: Final = TimeoutWatchdog()


def can_interrupt_here() -> bool:
    """Return whether a signal can interrupt an attempt in this thread."""
    if INTERRUPT_SIGNAL is None or threading.get_ident() != MAIN_THREAD_ID:
        return False
    displaced = WATCHDOG.is_displaced
    WATCHDOG.warn(displaced=displaced)
    return not displaced


def call_with_timeout(
    function: Callable[..., T], arguments: tuple[Any, ...], seconds: float | None, patience: Patience | None = None
) -> T:
    """Call a function and raise AttemptTimeout after `seconds`, or AttemptStalled when the patience is over."""
    if seconds is None and patience is None:
        return function(*arguments)
    if threading.get_ident() != MAIN_THREAD_ID or not WATCHDOG.is_ready():
        if not can_interrupt_here():
            return _call_in_thread(function, arguments, seconds, patience)
        WATCHDOG.start()
    end = deadline = _NEVER if seconds is None else monotonic() + seconds
    if patience is not None:
        deadline = min(end, patience.deadline()) + 0.0  # an object of its own, known by its identity
        WATCHDOG.move(deadline, lambda: min(end, patience.deadline()))
    try:
        WATCHDOG.deadlines.append(deadline)
        if deadline - monotonic() < WATCHDOG_POLL_SECONDS:
            WATCHDOG.wake_before(deadline)
        value = function(*arguments)
        WATCHDOG.deadlines.pop()
        return value
    except AttemptInterrupt as overdue:
        if unwatch(deadline) != overdue.depth:
            raise
        raise limit_error(seconds, patience) from None
    except BaseException:
        unwatch(deadline)
        raise
    finally:
        if patience is not None:
            WATCHDOG.stop_moving(deadline)


def limit_error(seconds: float | None, patience: Patience | None, *, left_behind: bool = False) -> AttemptTimeout:
    """Return the error of an attempt that was interrupted: stalled, or at its time limit."""
    if patience is not None and patience.seconds is not None and patience.is_over():
        return AttemptStalled(patience.seconds, left_behind=left_behind)
    return AttemptTimeout(seconds or 0.0, left_behind=left_behind)


def seconds_until(end: float, patience: Patience | None) -> float:
    """Return the seconds until a time limit, or until the patience is over, as far as is known now."""
    return (end if patience is None else min(end, patience.deadline())) - monotonic()


def unwatch(deadline: float) -> int:
    """Stop watching the attempt with this deadline object, and those inside it. Return its depth, or -1 if unwatched."""
    watched = WATCHDOG.deadlines
    if watched and watched[-1] is deadline:
        watched.pop()
        return len(watched)
    for depth in range(len(watched) - 1, -1, -1):
        if watched[depth] is deadline:
            del watched[depth:]
            return depth
    return -1


def _is_unwatching(frame: Any) -> bool:
    """Return whether `unwatch` is running. An interrupt there would leave the attempt watched for ever."""
    while frame is not None and frame.f_code is not unwatch.__code__:
        frame = frame.f_back
    return frame is not None


def _is_logging(frame: Any) -> bool:
    """Return whether a log record is being written. An interrupt there may leave the lock of a handler held for ever."""
    while frame is not None and frame.f_globals.get("__name__") != "logging":
        frame = frame.f_back
    return frame is not None


def _call_in_thread(
    function: Callable[..., T], arguments: tuple[Any, ...], seconds: float | None, patience: Patience | None
) -> T:
    from contextvars import copy_context

    context = copy_context()
    ended = threading.Event()
    result: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            result.append((True, context.run(function, *arguments)))
        except BaseException as error:  # raised again in the waiting caller
            result.append((False, error))
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="rung-attempt", daemon=True)
    thread.start()
    end = _NEVER if seconds is None else monotonic() + seconds
    while (left := seconds_until(end, patience)) > 0 and not ended.wait(min(left, threading.TIMEOUT_MAX)):
        continue
    if not result:
        raise limit_error(seconds, patience, left_behind=True)
    ok, value = result.pop()
    if ok:
        return value  # type: ignore[no-any-return]  # the function's own return type
    try:
        raise value
    finally:
        del value  # its traceback references this frame: a reference cycle
