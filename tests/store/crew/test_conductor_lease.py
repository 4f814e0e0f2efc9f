"""The conductor's lease on both stores: one holder, a term that only grows, and the fence of every write."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.domain.errors import ConductorLeaseHeld, ConductorReplaced, IllegalTransition
from rung.engine.process_identity import is_elsewhere
from rung.store.crew.conductor_key import load_key
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable
from tests.store.crew.stranger import Refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.store.crew.stranger import Stranger

TASK = "task-01"
ACQUIRE = "import sys; from rung.store.crew.table import CrewTable; CrewTable.open(sys.argv[1]).acquire_lease(600)"
WRITES: dict[str, Callable[[CrewTable], object]] = {
    "heartbeat": lambda table: table.heartbeat_self(CONDUCTOR),
    "reply": lambda table: table.reply(table.require_task(TASK), TaskState.EXITED, "x", MessageType.SYSTEM),
    "columns": lambda table: table.update_columns(TASK, note="x"),
    "fact": lambda table: table.set_fact("halted", "x"),
    "launch": lambda table: table.record_launch("s9", TASK),
    "exit": lambda table: table.record_exit("s9"),
    "restart": lambda table: table.record_restart(TASK, "x"),
    "message": lambda table: table.post_message(TASK, CONDUCTOR, "x", MessageType.SYSTEM),
    "add": lambda table: table.add_task(NewTask(task_id="task-02", instruction="do it")),
    "release": lambda table: table.release_lease(TaskState.COMPLETE),
}


def test_one_process_holds_it(table: CrewTable) -> None:
    """A second process is told who conducts, and nothing changes; released, the lease is free at once."""
    first = table.acquire_lease(600)
    with (
        table.clone() as other,
        pytest.raises(ConductorLeaseHeld, match=rf"process {first.pid} on {first.host}, since"),
    ):
        other.acquire_lease(600)
    assert table.conductor_lease().holder == first.holder
    table.release_lease(TaskState.COMPLETE)
    assert not table.conductor_lease().is_live
    with table.clone() as other:
        assert other.acquire_lease(600).term > first.term


def test_the_process_it_started_takes_it_over(table: CrewTable) -> None:
    """The holder's own successor takes the lease over, with a new term; nobody else does by guessing."""
    first = table.acquire_lease(600)
    with table.clone() as other:
        with pytest.raises(ConductorLeaseHeld):
            other.acquire_lease(600, succeeds="x")
        assert other.acquire_lease(600, succeeds=first.holder).term == first.term + 1


def test_a_dead_holder_on_this_machine_is_replaced_at_once(table: CrewTable, place: str) -> None:
    """The lease of a process that is gone is free, long before it expires."""
    subprocess.run([sys.executable, "-c", ACQUIRE, place], check=True)
    dead = table.conductor_lease()
    assert dead.seconds_left > 500
    assert not dead.is_live
    assert table.acquire_lease(600).term == dead.term + 1


def test_a_holder_elsewhere_is_replaced_when_its_lease_expires(table: CrewTable, stranger: Stranger) -> None:
    """Nobody here can see whether a process on another machine lives: its lease decides, by the database's clock."""
    table.acquire_lease(600)
    with stranger.conducts():
        stranger.changed("""UPDATE crew_lease SET process = '["far", "b", "n", 7, "1"]', host = 'far', pid = 7""")
    held = table.conductor_lease()
    assert is_elsewhere(held.process)
    assert held.is_live
    with table.clone() as other:
        with pytest.raises(ConductorLeaseHeld, match="process 7 on far"):
            other.acquire_lease(600)
        with stranger.conducts():
            stranger.changed("UPDATE crew_lease SET expires = julianday('now') * 86400 - 1")
        assert other.acquire_lease(600).term == held.term + 1


@pytest.mark.parametrize("write", WRITES)
def test_a_replaced_conductor_writes_nothing(table: CrewTable, write: str) -> None:
    """Every write of the former holder is refused by the term, and the table stays as it is."""
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    first = table.acquire_lease(600)
    with table.clone() as former:
        table.acquire_lease(600, succeeds=first.holder)
        before = (table.tasks(), table.messages(), table.processes(alive_only=False), table.conductor_lease().term)
        with pytest.raises(ConductorReplaced):
            WRITES[write](former)
        with pytest.raises(ConductorReplaced):
            former.require_lease()
        after = (table.tasks(), table.messages(), table.processes(alive_only=False), table.conductor_lease().term)
        assert [task.version for task in after[0]] == [task.version for task in before[0]]
        assert after[1:] == before[1:]
        table.require_lease()


def test_a_heartbeat_renews_it(tmp_path: Path) -> None:
    """The lease expires by the clock of the database, so many seconds after the last heartbeat."""
    now = [1_000_000.0]
    with CrewTable.open(str(tmp_path / "crew.db"), create=True, clock=lambda: now[0]) as table:
        table.acquire_lease(60)
        now[0] += 50
        table.heartbeat_self(CONDUCTOR)
        now[0] += 50
        assert table.conductor_lease().is_live
        now[0] += 11
        assert not table.conductor_lease().is_live


def test_a_term_only_grows(table: CrewTable, stranger: Stranger) -> None:
    """Not even the holder of the key lowers it, passes it on without a new term, or deletes it; a worker writes nothing."""
    table.acquire_lease(600)
    for sql, words in (
        ("UPDATE crew_lease SET term = term - 1", "only grows"),
        ("UPDATE crew_lease SET holder = 'me'", "only grows"),
        ("DELETE FROM crew_lease", "neither added nor deleted"),
        ("INSERT INTO crew_lease SELECT * FROM crew_lease", "neither added nor deleted"),
    ):
        with pytest.raises(Refused, match=words), stranger.conducts():
            stranger.changed(sql)
        with pytest.raises(Refused, match=r"only the conductor writes|neither added nor deleted|only grows"):
            stranger.changed(sql)
    with pytest.raises(IllegalTransition, match="another conductor has the lease"):
        table.connection.execute(
            "INSERT INTO crew_conductor (key, term) VALUES (?, ?)", [load_key(table.connection), 0]
        )
