"""A journal as a process sees it that dies before or after a chosen write, and the seeds of the crash matrices."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.store.durable_runs import DurableRunStore
from rung.store.run_lease import DurableRunLease

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from rung.store.backends.port import DurableFuture
    from rung.store.journal.journal import Journal

    T = TypeVar("T")


BATCH: Final = 100  # crashes of one test


def batches(gate: int, share: float = 1.0) -> list[range]:
    """Return the seeds of a crash matrix, in batches: so many in the gate, and that share of RUNG_CRASHES in a storm."""
    storm = os.environ.get("RUNG_CRASHES")
    count = gate if storm is None else int(int(storm) * share)
    return [range(first, min(first + BATCH, count)) for first in range(0, count, BATCH)]


def places(writes: int) -> list[tuple[int, str]]:
    """Return the writes at which real processes are killed, and the moment: a few in the gate, every one in a storm."""
    every = [(number, moment) for number in range(writes) for moment in ("before", "after")]
    return every if "RUNG_CRASHES" in os.environ else random.Random(writes).sample(every, 2)


def name_of(batch: range) -> str:
    """Return the name of a batch, for a test."""
    return f"{batch.start}-{batch.stop - 1}"


class Died(BaseException):
    """The process is gone: nothing after it happens."""


@dataclass
class Death:
    """Counts the writes of a process, and ends it before or after one of them."""

    at: int = 1_000_000
    is_after: bool = False
    writes: int = 0
    is_dead: bool = False

    def before(self) -> None:
        """End the process here if this write is the one."""
        if self.is_dead or (self.writes == self.at and not self.is_after):
            self.is_dead = True
            raise Died

    def after(self) -> None:
        """Count the write, and end the process if it was the one."""
        self.writes += 1
        if self.is_dead or self.writes - 1 == self.at:
            self.is_dead = True
            raise Died

    def write(self, write: Callable[..., DurableFuture[T]], *arguments: Any) -> DurableFuture[T]:
        """Make a write, which is durable before the process dies after it."""
        self.before()
        future = write(*arguments)
        future.exception()
        self.after()
        return future


class MortalLease(DurableRunLease):
    """Lease of a process that dies: nothing renews it, and nothing releases it."""

    def __enter__(self) -> MortalLease:
        return self

    def __exit__(self, *_: object) -> None:
        """Release nothing: a dead process does not."""


class MortalRuns(DurableRunStore):
    """Runs whose claims end with their process: a dead one owns nothing."""

    def claim(self, run: str, task: str = "", arguments: Any = None) -> DurableRunLease:
        """Claim a run."""
        claim = super().claim(run, task, arguments)
        return MortalLease(self, claim.run, claim.epoch, done=claim.done, exhausted=claim.exhausted)


class MortalJournal:
    """Journal as one process sees it. Every write, of events, steps and runs, may be the last."""

    def __init__(self, journal: Journal, death: Death) -> None:
        self.journal = journal
        self.death = death
        self.runs = MortalRuns(self, lease=0.0)
        self.events = journal.events

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def intervention(self, _: str) -> None:
        """Return none: there is no operator, and no thread that asks for one after the test."""

    def write(self, *arguments: Any) -> DurableFuture[Any]:
        """Run a transaction."""
        return self.death.write(self.journal.write, *arguments)

    def append_if(self, *arguments: Any) -> DurableFuture[None]:
        """Append events in one transaction with a precondition."""
        return self.death.write(self.journal.append_if, *arguments)


def killed_and_resumed(
    run: Callable[[Death], T], writes: int, chance: random.Random, *, is_final: bool = True
) -> tuple[T, int]:
    """Run something that dies at one or two of its writes, and is resumed. Return its result and the number of deaths.

    Without `is_final`, a run that has ended starts again: then it dies once, and before the write of its end.
    """
    writes, killed = (writes, 0) if is_final else (writes - 1, 0)
    for _ in range(chance.choice([1, 1, 2]) if is_final else 1):
        try:
            return run(Death(chance.randrange(writes), chance.random() < 0.5)), killed
        except Died:
            killed += 1
    return run(Death()), killed
