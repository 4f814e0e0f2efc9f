"""What an attempt reports while it has no run to tell: a guarded call makes none until something goes wrong.

Each task has `Reports` of its own, which every task and thread with a copy of its context shares: what a child
reports is heard by the call that started it. Blocking calls on the fast path run in the main thread alone, so one
object serves them all; it also hears whoever reports in another thread without such a context, because nobody
knows whose attempt that is, and an attempt that may have done something must not be repeated.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import ref

from rung.engine.timeouts.sync_timeout import MAIN, WATCHDOG

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS: Final = 100
SUMS: Final = 1_000


class AttemptReports:
    """What was reported in one place, and when: in seconds of the real clock, newest last."""

    __slots__ = ("above", "at", "dollars", "owner", "steps", "touched")

    def __init__(self, owner: Callable[[], Any] | None = None, above: tuple[AttemptReports, ...] = ()) -> None:
        self.owner = owner  # a weak reference to the task, where it is one's
        self.above = above  # those of the tasks it was started in
        self.at = 0.0
        self.touched = 0.0  # when it last did something that can be seen
        self.steps: deque[tuple[float, str]] = deque(maxlen=_STEPS)
        self.dollars: deque[tuple[float, float]] = deque()

    def spent(self, sum_: tuple[float, float]) -> None:
        """So much, at this moment."""
        self.at = sum_[0]
        self.dollars.append(sum_)
        if len(self.dollars) > SUMS:  # the oldest become one: most likely of a call that is long over
            self.dollars[1] = self.dollars[1][0], self.dollars[0][1] + self.dollars[1][1]
            self.dollars.popleft()

    @property
    def alive(self) -> bool:
        """May there be a call that still listens?"""
        task = None if self.owner is None else self.owner()
        return self.owner is None or (task is not None and not task.done())


class CollectedReports(NamedTuple):
    """What was reported during one attempt."""

    touched: bool
    dollars: float
    steps: list[tuple[float, str]]


MAIN_THREAD: Final = AttemptReports()
REPORTED: ContextVar[AttemptReports | None] = ContextVar("rung_reported", default=None)


def install(task: Any) -> None:
    """Give the running task reports of its own; above them are those it was started with."""
    here = REPORTED.get()
    above = () if here is None else tuple(each for each in (here, *here.above) if each.alive)
    if get_ident() == MAIN and WATCHDOG.due and MAIN_THREAD not in above:
        above = (*above, MAIN_THREAD)  # a blocking call is at work, and runs this loop
    REPORTED.set(AttemptReports(ref(task), above))


def listeners() -> list[AttemptReports]:
    """Everybody who hears what is reported here."""
    here = REPORTED.get()
    all_ = [] if here is None else [here, *here.above]
    if (here is None or get_ident() == MAIN) and MAIN_THREAD not in all_:
        all_.append(MAIN_THREAD)
    return all_


def any_since(began: float, *, awaited: bool) -> bool:
    """Was anything reported since then, in an attempt of this task or thread?"""
    here = REPORTED.get()
    if here is None:
        return MAIN_THREAD.at >= began
    return here.at >= began or (not awaited and MAIN_THREAD.at >= began and get_ident() == MAIN)


def collect(began: float, *, awaited: bool) -> CollectedReports:
    """What was reported since then, in an attempt of this task or thread; its steps are told once."""
    listening = _listening(awaited=awaited)
    # What two of them heard is one report, and one object.
    sums = {id(each): each for one in listening for each in one.dollars.copy() if each[0] >= began}
    steps = {id(each): each for one in listening for each in one.steps.copy() if each[0] >= began}
    for one in listening:
        one.steps.clear()
    return CollectedReports(
        any(one.touched >= began for one in listening),
        sum(dollars for _, dollars in sums.values()),
        sorted(steps.values(), key=lambda step: step[0]),
    )


def _listening(*, awaited: bool) -> list[AttemptReports]:
    here = REPORTED.get()
    if here is None:
        return [MAIN_THREAD]
    return [here] if awaited or get_ident() != MAIN else [here, MAIN_THREAD]
