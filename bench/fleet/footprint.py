"""Rows and bytes that one unit of work leaves in a journal, by table, on both stores."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import rung
from rung.engine.ports.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.store.journal.journal import Journal

PROMPT = "Rewrite the parser so that it reads one line at a time, and keep every test that is there. " * 4
ANSWER = {"answer": "The parser reads one line at a time now, and all tests pass. " * 4}
BREAKERS = rung.BreakerRegistry(rung.BreakerSettings(enabled=False))
POLICY = rung.policy("task", backoff={"base": 0}, models=["gpt-mini"])
_SQLITE_BYTES = """
SELECT coalesce(i.tbl_name, d.name), sum(d.pgsize) FROM dbstat d
  LEFT JOIN sqlite_schema i ON i.name = d.name WHERE d.name NOT LIKE 'sqlite_schema' GROUP BY 1"""
_POSTGRES_BYTES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
 WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"""


class Footprint(NamedTuple):
    """What one unit of work leaves."""

    rows: float
    bytes: float
    tables: Mapping[str, tuple[float, float]]  # rows and bytes, of those with at least a hundredth of a row

    @property
    def largest(self) -> str:
        """Return the three tables with the most bytes."""
        return ", ".join(sorted(self.tables, key=lambda name: -self.tables[name][1])[:3])


class HurriedClock(SystemClock):
    """The system's clock, but waits end at once: what a wait leaves in the journal does not depend on its length."""

    def sleep(self, seconds: float) -> None:
        """Do not wait."""


class Overloaded(Exception):
    """What a provider's SDK raises."""

    status_code = 529

    def __init__(self) -> None:
        super().__init__(
            "Error code: 529 - {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}"
        )


CLOCK = HurriedClock()


@rung.durable.task("bench.three_steps")
def three_steps(number: int) -> str:
    """A task of three steps with small results."""
    parts = [rung.durable.step(f"step {n}", lambda n=n: f"{number}.{n}") for n in range(3)]
    return " ".join(parts)


class Work:
    """Units of work, each a real call of the library with this journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._numbers = count()

    def success(self) -> None:
        """A recorded call that succeeds at once."""
        self._recover(failures=0)

    def recovery(self) -> None:
        """A call that fails once and is recovered by a retry."""
        self._recover(failures=1)

    def long_recovery(self) -> None:
        """A call that fails twice."""
        self._recover(failures=2)

    def durable_recovery(self) -> None:
        """The same with a run id: it survives a crash."""
        self._recover(failures=1, durable=True)

    def task(self) -> None:
        """A durable task of three steps."""
        number = next(self._numbers)
        rung.durable.start(self._journal, f"task-{id(self)}-{number}", "bench.three_steps", number=number)

    def _recover(self, *, failures: int, durable: bool = False) -> None:
        number, left = next(self._numbers), iter(range(failures))

        def attempt(_: rung.Request) -> dict[str, str]:
            if next(left, None) is not None:
                raise Overloaded
            return ANSWER

        request = rung.Request(prompt=f"{number} {PROMPT}", model="gpt-mini", idempotent=True)
        options: dict[str, Any] = {
            "policy": POLICY,
            "journal": self._journal,
            "retry_budget": None,
            "breakers": BREAKERS,
            "clock": CLOCK,
        }
        if durable:
            rung.durable.recover_sync(attempt, request, run_id=f"run-{id(self)}-{number}", **options)
        else:
            rung.recover_sync(attempt, request, **options)


UNITS: dict[str, tuple[str, Callable[[Work], None]]] = {
    "call that succeeds": ("success", Work.success),
    "recovery: one failure, one retry": ("recovery", Work.recovery),
    "recovery: two failures, two retries": ("long_recovery", Work.long_recovery),
    "durable recovery: one failure, one retry": ("durable_recovery", Work.durable_recovery),
    "durable task of three steps": ("task", Work.task),
}


def measure(journal: Journal, unit: Callable[[Work], None], number: int) -> Footprint:
    """Do a unit of work this many times, and count what it leaves, with what indexes and pages take."""
    work = Work(journal)
    unit(work)  # the rows that are shared, such as those of this hour
    before = _tables(journal)
    for _ in range(number):
        unit(work)
    after = _tables(journal)
    each = {name: ((rows - before[name][0]) / number, (size - before[name][1]) / number) for name, (rows, size) in after.items()}  # fmt: skip
    kept = {name: values for name, values in each.items() if values[0] >= 0.01}
    return Footprint(sum(rows for rows, _ in kept.values()), sum(size for _, size in kept.values()), kept)


def _tables(journal: Journal) -> dict[str, tuple[int, int]]:
    """Return rows and bytes of each table."""
    journal.flush(600)
    sql = _POSTGRES_BYTES if "://" in journal.backend.url else _SQLITE_BYTES
    sizes = {str(name): int(size) for name, size in journal.read(sql)}
    return {name: (int(journal.read(f"SELECT count(*) FROM {name}")[0][0]), size) for name, size in sizes.items() if not name.startswith("sqlite_")}  # fmt: skip
