"""A crew with one claimed task, a hostile worker that has nothing but SQL, and a conductor with real processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.worker_processes import RealProcesses
from rung.core.policy.parser import policy
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.judgement import CommandJudgement
from rung.crew.settings import ConductorSettings
from rung.crew.task_recovery import TaskRecoveries
from rung.store.crew.rows import NewTask
from tests.store.crew.conftest import place, postgres_server, postgres_url, table
from tests.store.crew.stranger import Stranger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable

__all__ = ["place", "postgres_server", "postgres_url", "table"]


@pytest.fixture
def lease(table: CrewTable) -> TaskLease:
    """The worker's own task, `mine`; the task `other` is not its."""
    for name in ("mine", "other"):
        table.add_task(NewTask(task_id=name, instruction="do it", title=name))
    return table.claim("mine", "s1")


@pytest.fixture
def worker(lease: TaskLease, place: str) -> Iterator[Stranger]:
    """A worker that has the task `mine` as session `s1`, and nothing but SQL."""
    del lease
    with Stranger(place) as opened:
        yield opened


@pytest.fixture
def log() -> list[str]:
    """What the conductor told."""
    return []


@pytest.fixture
def conductor(table: CrewTable, place: str, tmp_path: Path, log: list[str]) -> Iterator[Conductor]:
    """A conductor with real processes, whose turns the test makes."""
    directory = tmp_path / "crew"
    crew = ConductorContext(
        table=table,
        table_url=place,
        runtime_dir=directory,
        settings=ConductorSettings(workers=4, poll=0.05, grace=0.1, claim_within=60.0),
        processes=RealProcesses(directory),
        judgement=CommandJudgement(),
        recoveries=TaskRecoveries(policy("crew"), time.time),
        now=time.time,
        log=log.append,
    )
    yield Conductor(crew)
    assert isinstance(crew.processes, RealProcesses)
    for name in crew.processes.names():
        crew.processes.end(name, 0.0)
