"""Workflow engine of the simulation, with the rules of DBOS: each execution of a run has a token, and only it records steps.

As in DBOS, `resume` queues every run again that has not succeeded, a cancelled one included.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Conflict(Exception):
    """Another execution owns the run."""


class Begun(NamedTuple):
    """Execution of a run that an executor has begun."""

    run: str
    token: int
    done: int  # steps that are recorded


@dataclass
class StoredWorkflow:
    """Run as stored."""

    status: str = "ENQUEUED"
    executor: str = ""
    token: int = 0
    begun_at: float = 0.0
    begun: int = 0  # executions since its last new step, with the one that recorded it
    begun_before: int = 0  # the same, before that step
    progress_at: float = 0.0  # when it was recorded
    cancelled_at: float = 0.0
    steps: list[str] = field(default_factory=list)


class Workflows:
    """Table of runs. Each method is one transaction."""

    def __init__(self, now: Callable[[], float], violated: Callable[[str], object]) -> None:
        self.table: dict[str, StoredWorkflow] = {}
        self._now, self._violated = now, violated

    def submit(self, run: str) -> None:
        """Queue a new run."""
        self.table.setdefault(run, StoredWorkflow())

    def dequeue(self, executor: str) -> Begun | None:
        """Begin the oldest queued run."""
        for name, run in self.table.items():
            if run.status == "ENQUEUED":
                run.status, run.executor, run.begun_at = "PENDING", executor, self._now()
                run.token += 1
                run.begun += 1
                return Begun(name, run.token, len(run.steps))
        return None

    def record(self, name: str, token: int, number: int, value: str) -> None:
        """Record a step."""
        run = self._owned(name, token)
        if number < len(run.steps) and run.steps[number] != value:
            self._violated(f"step {number} of {name} was recorded twice")
        elif number == len(run.steps):
            run.steps.append(value)
            run.begun_before, run.begun, run.progress_at = run.begun, 1, self._now()
        elif number > len(run.steps):
            self._violated(f"step {len(run.steps)} of {name} was lost")

    def finish(self, name: str, token: int) -> None:
        """End a run."""
        self._owned(name, token).status = "SUCCESS"

    def in_hand(self) -> dict[str, list[str]]:
        """Return the runs that executors have begun."""
        found: dict[str, list[str]] = {}
        for name, run in self.table.items():
            if run.status == "PENDING":
                found.setdefault(run.executor, []).append(name)
        return found

    def count(self, name: str) -> int:
        """Return the number of recorded steps."""
        return len(self.table[name].steps)

    def status(self, name: str) -> str:
        """Return the status of a run."""
        return self.table[name].status

    def resume(self, name: str) -> None:
        """Queue a run again, whoever has it."""
        if self.table[name].status != "SUCCESS":
            self.table[name].status = "ENQUEUED"
            self.table[name].token += 1

    def cancel(self, name: str) -> None:
        """End a run that has not ended."""
        if self.table[name].status != "SUCCESS":
            self.table[name].status, self.table[name].cancelled_at = "CANCELLED", self._now()
            self.table[name].token += 1

    def return_of(self, executor: str) -> None:
        """Count the executions of an executor that was silent for a lease, and is back, as new ones: each silence counts."""
        for run in self.table.values():
            if run.status == "PENDING" and run.executor == executor:
                run.begun += 1

    def executions_without_step(self, name: str, seconds: float) -> int:
        """Return the executions without a new step before a run was cancelled, or those of which its canceller knew.

        A hung executor may have recorded a step less than `seconds` before, while a watchdog was at it.
        """
        run = self.table[name]
        return max(run.begun, run.begun_before if run.cancelled_at - run.progress_at < seconds else 0)

    def _owned(self, name: str, token: int) -> StoredWorkflow:
        run = self.table[name]
        if run.status == "SUCCESS" and token == run.token:
            return run  # the answer to its end was lost
        if run.status != "PENDING" or token != run.token:
            raise Conflict(name)
        return run


class WorkflowClient:
    """What a watchdog needs of the engine. `on_call` is told before each call that changes something."""

    def __init__(
        self, workflows: Workflows, on_call: Callable[[str], object], on_change: Callable[[str, str], object]
    ) -> None:
        self._workflows, self._on_call, self._on_change = workflows, on_call, on_change

    async def runs_in_hand(self) -> dict[str, list[str]]:
        """Return the runs that executors have begun."""
        return await asyncio.to_thread(self._workflows.in_hand)

    async def step_count(self, run: str) -> int:
        """Return the number of recorded steps."""
        self._on_call("count")
        return await asyncio.to_thread(self._workflows.count, run)

    async def take_over(self, run: str) -> None:
        """Queue a run again: a query and a change, as with DBOS."""
        if await asyncio.to_thread(self._workflows.status, run) != "PENDING":
            return
        self._on_call("resume")
        await asyncio.to_thread(self._change, "resume", run)

    async def end_partial(self, run: str, reason: str) -> None:
        """End a run."""
        assert reason
        self._on_call("cancel")
        await asyncio.to_thread(self._change, "cancel", run)

    def _change(self, what: str, run: str) -> None:
        self._on_change(what, run)
        getattr(self._workflows, what)(run)
