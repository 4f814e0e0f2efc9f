"""Reports made from inside an attempt that has no run: a guarded call creates a run only after a failure.

Each task has its own `AttemptReports`, shared with every task and thread that has a copy of its context: a report of a
child reaches the call that started it. Blocking calls on the fast path run only in the main thread, so one object
serves them all. That object also receives reports from threads without such a context: their attempt is unknown, and an
attempt that may have had side effects must not be repeated.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import ref

from rung.engine.timeouts.sync_timeout import MAIN_THREAD_ID, WATCHDOG

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_STEPS: Final = 100
MAX_COST_REPORTS: Final = 1_000


class AttemptReports:
    """Report buffer of one task or of the main thread. Times are seconds of the system clock, newest last."""

    __slots__ = ("costs", "last_report_at", "owner", "parents", "side_effect_at", "steps")

    def __init__(self, owner: Callable[[], Any] | None = None, parents: tuple[AttemptReports, ...] = ()) -> None:
        self.owner = owner  # weak reference to the owning task; None for a thread
        self.parents = parents  # buffers of the tasks that started this one
        self.last_report_at = 0.0
        self.side_effect_at = 0.0  # time of the last reported side effect
        self.steps: deque[tuple[float, str]] = deque(maxlen=_MAX_STEPS)
        self.costs: deque[tuple[float, float]] = deque()

    def add_cost(self, cost: tuple[float, float]) -> None:
        """Add a cost report: its time and its dollars."""
        self.last_report_at = cost[0]
        self.costs.append(cost)
        if len(self.costs) > MAX_COST_REPORTS:  # merge the two oldest: their call has most likely ended
            self.costs[1] = self.costs[1][0], self.costs[0][1] + self.costs[1][1]
            self.costs.popleft()

    @property
    def is_active(self) -> bool:
        """Whether the owning task may still be running."""
        task = None if self.owner is None else self.owner()
        return self.owner is None or (task is not None and not task.done())


class CollectedReports(NamedTuple):
    """Reports of one attempt."""

    has_side_effects: bool
    dollars: float
    steps: list[tuple[float, str]]


MAIN_THREAD_REPORTS: Final = AttemptReports()
CURRENT_REPORTS: ContextVar[AttemptReports | None] = ContextVar("rung_reported", default=None)


def install(task: Any) -> None:
    """Give the running task its own report buffer, with the buffers it inherited as parents."""
    here = CURRENT_REPORTS.get()
    parents = () if here is None else tuple(buffer for buffer in (here, *here.parents) if buffer.is_active)
    if get_ident() == MAIN_THREAD_ID and WATCHDOG.deadlines and MAIN_THREAD_REPORTS not in parents:
        parents = (*parents, MAIN_THREAD_REPORTS)  # a blocking guarded call runs this event loop
    CURRENT_REPORTS.set(AttemptReports(ref(task), parents))


def listeners() -> list[AttemptReports]:
    """Return all buffers that receive a report made here."""
    here = CURRENT_REPORTS.get()
    buffers = [] if here is None else [here, *here.parents]
    if (here is None or get_ident() == MAIN_THREAD_ID) and MAIN_THREAD_REPORTS not in buffers:
        buffers.append(MAIN_THREAD_REPORTS)
    return buffers


def any_since(began: float, *, is_async: bool) -> bool:
    """Return whether an attempt of this task or thread has reported anything since `began`."""
    here = CURRENT_REPORTS.get()
    if here is None:
        return MAIN_THREAD_REPORTS.last_report_at >= began
    return here.last_report_at >= began or (
        not is_async and MAIN_THREAD_REPORTS.last_report_at >= began and get_ident() == MAIN_THREAD_ID
    )


def collect(began: float, *, is_async: bool) -> CollectedReports:
    """Return the reports of this task or thread since `began`. Steps are removed, so that they are returned once."""
    sources = _sources(is_async=is_async)
    # A report in two buffers is one object: count it once.
    costs = {id(report): report for source in sources for report in source.costs.copy() if report[0] >= began}
    steps = {id(report): report for source in sources for report in source.steps.copy() if report[0] >= began}
    for source in sources:
        source.steps.clear()
    return CollectedReports(
        any(source.side_effect_at >= began for source in sources),
        sum(dollars for _, dollars in costs.values()),
        sorted(steps.values(), key=lambda step: step[0]),
    )


def _sources(*, is_async: bool) -> list[AttemptReports]:
    here = CURRENT_REPORTS.get()
    if here is None:
        return [MAIN_THREAD_REPORTS]
    return [here] if is_async or get_ident() != MAIN_THREAD_ID else [here, MAIN_THREAD_REPORTS]
