"""The conductor's side of pools: which failures close one, which task may start, and what a probe has shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rung.core.classify.classifier import classify
from rung.core.crew.contract import TaskState
from rung.core.crew.handoff import Handoff
from rung.core.crew.pool import (
    DEFAULT_POOL,
    Pool,
    PoolState,
    after_failure,
    after_lost_probe,
    after_progress,
    after_start,
    describe,
    is_spreading,
    may_start,
)
from rung.core.crew.service_trouble import parse_hand_back, trouble_of
from rung.core.domain.failures import Evidence
from rung.engine.local_zone import local_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.crew.service_trouble import Trouble
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import CrewMessageRow, TaskRow

_OUTPUT_CHARS: Final = 2_000  # of the end of a dead worker's output


def absorb(crew: ConductorContext, task: TaskRow, trouble: Trouble | None) -> bool:
    """Close the task's pool if its worker met trouble of the service behind it. Return whether the task waits for it."""
    if trouble is None:
        return False
    is_absorbed = False

    def change(pool: Pool) -> Pool:
        nonlocal is_absorbed
        after, is_absorbed = after_failure(pool, task.task_id, trouble, crew.now(), crew.jitter(), crew.settings.pools)
        return after

    name = crew.table.pool_of(task.task_id)
    after = _change(crew, name, change)
    if after.state is PoolState.BLOCKED:
        _report_blocked(crew, name, after)
    return is_absorbed


def progressed(crew: ConductorContext, task: TaskRow) -> None:
    """Open the task's pool if the task is its probe."""
    name = crew.table.pool_of(task.task_id)
    if name in crew.table.pools():
        _change(crew, name, lambda pool: after_progress(pool, task.task_id, crew.now()))


def observe_probes(crew: ConductorContext) -> None:
    """Open the pools whose probe has worked for long enough; replace a probe that is gone."""
    for name, pool in crew.table.pools().items():
        if not pool.probe:
            continue
        task = crew.table.task(pool.probe)
        if task is not None and _has_progress(crew, task, pool):
            progressed(crew, task)
        elif task is None or _is_lost(crew, task):
            _replace_probe(crew, name, pool.probe)


def _replace_probe(crew: ConductorContext, name: str, gone: str) -> None:
    _change(crew, name, lambda pool: after_lost_probe(pool, gone, crew.now(), crew.settings.pools))


def _has_progress(crew: ConductorContext, task: TaskRow, pool: Pool) -> bool:
    """Return whether the probe has got further: it is complete, or reported progress and has worked for long enough."""
    if task.state is TaskState.COMPLETE:
        return True
    is_longer = crew.now() - (pool.probed_at or 0.0) >= crew.settings.pools.probe_seconds
    has_reported = bool(task.progress_at) and (task.progress_at or "") > (task.started_at or "")
    return task.state is TaskState.WORKING and is_longer and has_reported


def _is_lost(crew: ConductorContext, task: TaskRow) -> bool:
    """Return whether the probe ended, or waits for a person, without a word about the service."""
    if task.outcome or task.needs_person:
        return True
    is_launched = bool(task.command or crew.settings.command)
    is_free = task.open_for_claim and task.state in (TaskState.WATCHING, TaskState.FIX_PROPOSED)
    return is_free and is_launched and task.task_id not in crew.table.running_sessions()


@dataclass(slots=True)
class StartGate:
    """Which tasks may start in one turn of the dispatcher."""

    crew: ConductorContext
    pools: dict[str, Pool] = field(init=False)
    names: dict[str, str] = field(init=False)  # of the pools of tasks that are not in the default pool
    admitted: set[str] = field(default_factory=set)  # pools that start one task per turn, and have one

    def __post_init__(self) -> None:
        self.pools = self.crew.table.pools()
        self.names = self.crew.table.task_pools() if self.pools else {}

    def admits(self, task_id: str) -> bool:
        """Return whether the task may start. A closed pool, or one that opened just now, starts one task per turn."""
        name = self.names.get(task_id, DEFAULT_POOL)
        pool = self.pools.get(name)
        if pool is None:
            return True
        workers = self.crew.settings.workers
        if name in self.admitted or not may_start(pool, self.crew.now(), workers):
            return False
        if not pool.is_open or is_spreading(pool, workers):
            self.admitted.add(name)
        return True

    def failures(self, task_id: str) -> int:
        """Return how often the task met the trouble of its closed pool: the next probe is one that met it least often."""
        pool = self.pools.get(self.names.get(task_id, DEFAULT_POOL))
        return 0 if pool is None or pool.is_open else pool.failed_by.get(task_id, 0)

    def start(self, task_id: str) -> bool:
        """Record that the task starts. Return False if its pool has closed meanwhile, or has another probe."""
        name = self.names.get(task_id, DEFAULT_POOL)
        if name not in self.pools:
            return True
        crew, may = self.crew, False

        def change(pool: Pool) -> Pool:
            nonlocal may
            now = crew.now()
            may = may_start(pool, now, crew.settings.workers)
            return after_start(pool, task_id, now, crew.jitter(), crew.settings.pools) if may else pool

        after = _change(crew, name, change)
        if after.probe == task_id and may:
            crew.log(f"{task_id}: probes pool {name}")
        return may


def blocked_pools(crew: ConductorContext) -> set[str]:
    """Return the pools that only a person can open."""
    return {name for name, pool in crew.table.pools().items() if pool.state is PoolState.BLOCKED}


def handover_trouble(message: CrewMessageRow, now: float) -> Trouble | None:
    """Return the trouble that a hand-over names as its reason."""
    handoff = Handoff.parse(message.message)
    text = message.message[:_OUTPUT_CHARS] if handoff is None else handoff.reason
    at = sent_at(message, now)
    return parse_hand_back(text) or trouble_of(classify(Evidence(text=text), at, local_zone()), at)


def exit_trouble(crew: ConductorContext, task_id: str, code: int | None) -> Trouble | None:
    """Return the trouble that a dead worker's exit code and last output name; None if it was killed, or is unknown."""
    if code is None or code < 0:
        return None
    text = crew.processes.output(task_id, latest=True)[-_OUTPUT_CHARS:]
    return trouble_of(classify(Evidence(text=text, exit_code=code), crew.now(), local_zone()), crew.now())


def sent_at(message: CrewMessageRow, now: float) -> float:
    """Return when a message was sent, or now if its time cannot be read: "in five minutes" counts from there."""
    try:
        return datetime.fromisoformat(message.timestamp).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return now


def _change(crew: ConductorContext, name: str, change: Callable[[Pool], Pool]) -> Pool:
    before, after = crew.table.change_pool(name, change)
    if describe(before) != describe(after):
        crew.log(f"pool {name}: {describe(after) or 'open'}")
    return after


def _report_blocked(crew: ConductorContext, name: str, pool: Pool) -> None:
    """Write one report for the whole pool."""
    names = crew.table.task_pools()
    waiting = [row for row in crew.table.tasks() if row.state is not TaskState.COMPLETE and not row.outcome]
    tasks = "\n".join(
        f"- {row.task_id}: {row.title}" for row in waiting if names.get(row.task_id, DEFAULT_POOL) == name
    )
    text = _REPORT.format(name=name, state=describe(pool), tasks=tasks or "none", option=crew.db_option())
    crew.write(f"escalations/pool-{name}.md", text)


_REPORT: Final = """\
# Pool {name} needs a person

The account or model that these tasks share cannot be used, and nobody knows until when, or it would take too long:

- {state}

No error was counted. The tasks keep their place:

{tasks}

## What to do

Raise the limit, pay the bill or change the account, then open the pool:

- `rung crew wake {name} {option}` while the crew runs
- `rung crew run` with the same plan, if the crew has ended: it opens the pool, too
"""
