"""Network between the hosts and the database: it delays, loses and repeats calls and answers, and is cut at times."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from random import Random

    from tests.fleet_simulation.virtual_time import Process, VirtualLoop

GIVE_UP_SECONDS = 3.0  # after which a call without an answer fails
MAX_STUCK_SECONDS = 25.0  # for which a call can be on its way
# Of these, a process makes the next one only after the last one was answered or given up: its connection keeps their order.
ORDERED = frozenset({"lease_spend", "charge_keys", "_exchange", "add_usage", "_change", "dequeue"})
ANSWERED = frozenset(
    {"dequeue"}
)  # a run that a living executor does not know of is lost in DBOS too, and is its to solve


class Cut(NamedTuple):
    """Time in which a host, or every host (None), cannot reach the database."""

    host: int | None
    begin: float
    end: float


class Faults(NamedTuple):
    """Chances of what happens to one call."""

    lost: float = 0.0
    unanswered: float = 0.0
    stuck: float = 0.0
    repeated: float = 0.0
    in_doubt: float = 0.0


class _Call(NamedTuple):
    at: float
    number: int
    process: Process
    run: Callable[[], Any]
    read: float  # on the clock of the process when it was sent
    answer: Callable[[Any, BaseException | None], None]


class Network:
    """Carries calls. Those that are due run one after another, in the order of their arrival."""

    def __init__(self, loop: VirtualLoop, chance: Random, trace: Callable[..., None]) -> None:
        self._loop, self._chance, self._trace = loop, chance, trace
        self.faults, self.cuts = Faults(), list[Cut]()
        self._calls: list[_Call] = []
        self._count = 0
        self._depth = 0

    def is_cut(self, host: int) -> bool:
        """Return whether a host cannot reach the database now."""
        now = self._loop.time()
        return any(cut.host in (None, host) and cut.begin <= now < cut.end for cut in self.cuts)

    def send(self, process: Process, run: Callable[[], Any]) -> asyncio.Future[Any]:
        """Send a call; return the future of its answer."""
        future: asyncio.Future[Any] = self._loop.create_future()
        chance, faults, now = self._chance, self.faults, self._loop.time()
        delay, is_answered = chance.uniform(0.002, 0.4), _name(run) in ANSWERED
        if chance.random() < faults.stuck:
            delay = chance.uniform(1.0, MAX_STUCK_SECONDS)
            if not is_answered:
                self._fail(future)
        if chance.random() < faults.lost:
            self._fail(future)
            return future
        process.last_arrival = arrival = max(now + delay, process.last_arrival)
        is_unanswered = chance.random() < faults.unanswered and not is_answered

        def answer(result: Any, error: BaseException | None) -> None:
            if is_unanswered or (self.is_cut(process.host) and not (is_answered and error is None)):
                self._fail(future)
            else:
                self._loop.call_later(chance.uniform(0.002, 0.2), _resolve, future, result, error)

        self._put(_Call(arrival, self._number(), process, run, process.clock.read(), answer))
        if chance.random() < faults.repeated and _name(run) not in ORDERED:
            again = arrival + chance.uniform(0.0, MAX_STUCK_SECONDS)
            self._put(_Call(again, self._number(), process, run, process.clock.read(), lambda *_: None))
        return future

    def let_others_act(self) -> None:
        """Run the calls that arrive within a second, although one is being answered: its connection is lost meanwhile."""
        if self._depth < 2:  # deep enough
            self._run_due(self._loop.time() + 1.0)

    def doubt(self) -> str:
        """Return what happens to a commit."""
        draw = self._chance.random()
        return "certain" if draw >= self.faults.in_doubt else "lost" if draw < self.faults.in_doubt / 2 else "done"

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _fail(self, future: asyncio.Future[Any]) -> None:
        self._loop.call_later(GIVE_UP_SECONDS, _resolve, future, None, StoreUnavailable("no answer in time"))

    def _put(self, call: _Call) -> None:
        heapq.heappush(self._calls, call)
        self._loop.call_at(call.at, self._run_due)

    def _run_due(self, until: float | None = None) -> None:
        self._depth += 1
        while self._calls and self._calls[0].at <= (self._loop.time() if until is None else until):
            self._execute(heapq.heappop(self._calls))
        self._depth -= 1

    def _execute(self, call: _Call) -> None:
        if self.is_cut(call.process.host):
            call.answer(None, StoreUnavailable("the database is out of reach"))
            return
        clock = call.process.clock
        before, clock.frozen = clock.frozen, call.read
        try:
            result, error = call.run(), None
        except BaseException as raised:  # LeaseLost is one
            result, error = None, raised
        finally:
            clock.frozen = before
        self._trace(f"{call.process.name} {_name(call.run)} -> {error or result!r:.100}")
        call.answer(result, error)


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        future.exception()  # the process that waits for it may be dead


def _name(run: Callable[[], Any]) -> str:
    """Return the name of the function that `asyncio.to_thread` was given."""
    cells = [cell.cell_contents for cell in getattr(run, "__closure__", None) or ()]
    called = next((cell for cell in cells if hasattr(cell, "func")), None)
    function = called.args[0] if called is not None else run
    return str(getattr(function, "__name__", getattr(getattr(function, "func", None), "__name__", "?")))
