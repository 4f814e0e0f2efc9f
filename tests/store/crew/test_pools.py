"""Pools in the table, on both stores: changes are transactions, excused errors are not counted, claims respect a closed pool."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.crew.pool import Pool, PoolState
from rung.core.domain.errors import ConfigError, IllegalTransition
from rung.store.crew.operator_commands import wake_pools
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from tests.store.crew.stranger import Stranger

PARKED = Pool(state=PoolState.PARKED, reason="limit", since=1.0, until=2_000.0, next_probe=2_000.0)


def test_a_pool_is_kept_whole(table: CrewTable, place: str) -> None:
    """Another connection reads the state that was written, and each change of it is a message of the conductor."""
    probing = replace(PARKED, probe="task-01", closings={"task-01": 2})
    assert table.change_pool("default", lambda _: PARKED) == (Pool(), PARKED)
    table.change_pool("default", lambda _: probing)
    with CrewTable.open(place) as other:
        assert other.pools() == {"default": probing}
        assert wake_pools(other, 5.0) == ["default"]
    assert table.pools()["default"] == Pool(opened_at=5.0)
    said = [one.message for one in table.messages(CONDUCTOR, types=(MessageType.SYSTEM,))]
    assert said[0].startswith("POOL default: parked until 1970-01-01T00:33:20Z: limit")
    assert said[-1] == "POOL default: open"


def test_two_connections_do_not_lose_a_change(table: CrewTable) -> None:
    """Conductor threads change one pool at once: every change is made on the other's result."""

    def fail(connection: CrewTable) -> None:
        with connection:
            for _ in range(20):
                connection.change_pool("default", lambda pool: replace(pool, failed_probes=pool.failed_probes + 1))

    threads = [threading.Thread(target=fail, args=(table.clone(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.pools()["default"].failed_probes == 60


def test_an_excused_error_is_not_counted(table: CrewTable) -> None:
    """The error that was the pool's is taken back with the answer, in one transaction; the next one counts."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    claim = table.claim("task-01", "s1")
    table.report_error(claim, "429")
    task = table.require_task("task-01")
    assert task.error_tries == 1
    assert table.reply(task, TaskState.EXIT_REQUESTED, "PARKED", MessageType.EXIT_REQUEST, excuse=True)
    assert not table.reply(task, TaskState.EXIT_REQUESTED, "PARKED", MessageType.EXIT_REQUEST, excuse=True)
    assert table.require_task("task-01").error_tries == 0
    table.hand_off(claim, "HANDOFF: asked to")
    table.reply(table.require_task("task-01"), TaskState.FIX_PROPOSED, "go on", MessageType.INSTRUCTION)
    assert table.report_error(table.claim("task-01", "s2"), "ImportError") == 1
    assert [row.error_tries for row in table.tasks()] == [1]


def test_a_worker_cannot_excuse_itself(table: CrewTable, stranger: Stranger) -> None:
    """Without the crew's key, neither the state of a pool nor an excuse can be written."""
    for name in ("excused/task-01", "pool/default"):
        with pytest.raises(IllegalTransition):
            table.connection.execute("INSERT INTO crew_facts (name, value) VALUES (?, '9')", [name])
        with pytest.raises(Exception, match="only the conductor"):
            stranger.changed(f"INSERT INTO crew_facts (name, value) VALUES ('{name}', '9')")


def test_the_next_free_task_is_of_an_open_pool(table: CrewTable) -> None:
    """`claim_next` skips the tasks of a closed pool, except its probe; a claim by name is the worker's decision."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    table.add_task(NewTask(task_id="task-02", instruction="do it", pool="other"))
    table.add_task(NewTask(task_id="task-03", instruction="do it"))
    assert [table.pool_of(f"task-0{n}") for n in (1, 2, 3)] == ["default", "other", "default"]
    table.change_pool("default", lambda _: PARKED)
    other = table.claim_next("s1")
    assert other is not None
    assert other.task_id == "task-02"
    assert table.claim_next("s2") is None
    table.change_pool("default", lambda pool: replace(pool, probe="task-03"))
    probe = table.claim_next("s3")
    assert probe is not None
    assert probe.task_id == "task-03"
    assert table.claim("task-01", "s4").task_id == "task-01"


def test_a_task_moves_to_another_pool(table: CrewTable) -> None:
    """The pool of a task can be changed, and set back; a name that is no name is refused."""
    table.add_task(NewTask(task_id="task-01", instruction="do it", pool="first"))
    table.set_task_pool("task-01", "second")
    assert table.task_pools() == {"task-01": "second"}
    table.set_task_pool("task-01", "")
    assert (table.task_pools(), table.pool_of("task-01")) == ({}, "default")
    with pytest.raises(ConfigError, match="pool"):
        table.add_task(NewTask(task_id="task-02", instruction="do it", pool="a b"))
