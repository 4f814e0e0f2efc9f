"""A table that is away for a while: what is repeated, and what is written once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.core.domain.errors import StoreUnavailable
from rung.store.crew import table_patience
from rung.store.crew.rows import NewTask
from rung.store.crew.table_patience import patiently, pause
from rung.store.crew.worker import CrewWorker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Row
    from rung.store.crew.connection import CrewConnection
    from rung.store.crew.table import CrewTable

TASK = "task-01"


class Flaky:
    """A real connection that fails once: at a statement of its own, or at a commit, before or after it."""

    def __init__(self, inner: CrewConnection, fault: str) -> None:
        self.inner, self.url, self.fault = inner, inner.url, fault

    def _fail(self, fault: str) -> None:
        if self.fault == fault:
            self.fault = ""
            raise StoreUnavailable(fault)

    def verify(self, *, full: bool = False) -> None:
        self.inner.verify(full=full)

    def execute(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        self._fail("statement")
        return self.inner.execute(sql, values)

    def begin(self) -> None:
        self._fail("begin")
        self.inner.begin()

    def commit(self) -> None:
        self._fail("before the commit")
        self.inner.commit()
        self._fail("after the commit")

    def rollback(self) -> None:
        self.inner.rollback()

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize("fault", ["statement", "begin", "before the commit", "after the commit"])
def test_a_report_is_written_once(table: CrewTable, place: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the table goes away during a report, exactly one message and one change of state are there afterwards."""
    monkeypatch.setattr(table_patience, "FIRST_PAUSE_SECONDS", 0.0)
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    with CrewWorker(place, TASK, session="s1") as worker:
        patient = worker.table.connection
        flaky = patient.inner = Flaky(patient.inner, fault)  # type: ignore[attr-defined]  # the worker's is patient
        assert worker.error("boom") == 1
        assert flaky.fault == ""
        assert len(table.messages(TASK, types=(MessageType.ERROR,))) == 1
        table.reply(table.require_task(TASK), TaskState.FIX_PROPOSED, "x", MessageType.FIX_PROPOSAL)
        flaky.fault = fault
        assert worker.wait_for_answer(poll=0.0).state is TaskState.FIX_PROPOSED
        flaky.fault = fault
        assert worker.review("done", checkpoint=1) == 1
        assert len(table.messages(TASK, types=(MessageType.REVIEW_REQUEST,))) == 1
        flaky.fault = fault
        worker.hand_off("HANDOFF: enough")
    assert len(table.messages(TASK, types=(MessageType.HANDOFF,))) == 1
    assert table.require_task(TASK).state is TaskState.EXITED


def test_a_claim_that_was_written_is_not_lost(table: CrewTable) -> None:
    """A session whose claim was committed while the table went away finds its lease again."""
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    assert table.lease_of("s1") is None
    assert table.claim(TASK, "s1") == table.lease_of("s1")


def test_patience_ends() -> None:
    """The pauses grow up to a limit, it is said once, and after the last second the error is raised."""
    clock, said = [0.0], list[str]()

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    def away() -> None:
        raise StoreUnavailable("no server")

    with pytest.raises(StoreUnavailable):
        patiently(away, said.append, 60.0, now=lambda: clock[0], sleep=sleep)
    assert 60.0 <= clock[0] <= 65.0
    assert said == ["the crew's table is unavailable, trying again: no server"]
    assert [pause(tries) for tries in (1, 2, 3, 5, 6, 99)] == [0.25, 0.5, 1.0, 4.0, 5.0, 5.0]


def test_a_worker_tries_as_often_as_it_beats() -> None:
    """A worker's pauses while the table is away are no longer than its time between two heartbeats."""
    pauses: list[float] = []

    def away() -> None:
        if len(pauses) < 6:
            raise StoreUnavailable("no server")

    patiently(away, longest_pause=0.5, sleep=pauses.append)
    assert pauses == [0.25, *[0.5] * 5]
