"""The written protocol of a conductor: its own statements, as they stand, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.domain.errors import ConfigError, IllegalTransition, StoreError
from rung.store.crew.conductor_key import WORKER_VARIABLE
from rung.store.crew.protocol_sql import run_as_conductor, split_statements
from rung.store.crew.rows import NewTask
from rung.store.crew.trigger_conditions import KEY_DIGEST_FACT

if TYPE_CHECKING:
    from rung.store.crew.table import CrewTable

TASK = "task-03"
FIX = """
INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES (
    'task-03', 'task-00',
    'FIX PROPOSAL (Retry 1/5):
     Root cause: 100% a typo; isn''t it?
     Fix: mend it
     Retry: run the tests',
    'fix_proposal'
);

UPDATE orchestration_tasks
SET state = 'fix_proposed', last_heartbeat = datetime('now')
WHERE task_id = 'task-03';
"""
EXHAUSTED = """
UPDATE orchestration_tasks
SET state = 'context_recovery', last_heartbeat = datetime('now')
WHERE task_id = 'task-00';
"""
FALLBACK = "DELETE FROM orchestration_tasks WHERE task_id LIKE 'fallback-%' AND session_id = 's9';"
FIND = "SELECT task_id, state, last_error, retry_count FROM orchestration_tasks\nWHERE state = 'error' AND task_id NOT IN ('task-00', 'souffleur');"


@pytest.fixture
def erring(table: CrewTable) -> CrewTable:
    """Return a table whose worker has reported an error."""
    table.add_task(NewTask(task_id=TASK, instruction="build the door"))
    table.report_error(table.claim(TASK, "s1"), "typo")
    return table


def test_the_conductors_statements_run_as_they_stand(erring: CrewTable) -> None:
    """Fix proposal, detection, fallback row and context recovery of the protocol, in one transaction each."""
    assert [row[:3] for row in run_as_conductor(erring, FIND)] == [(TASK, "error", "typo")]
    assert run_as_conductor(erring, FIX) == []
    assert erring.require_task(TASK).state is TaskState.FIX_PROPOSED
    (said,) = erring.messages(TASK, types=(MessageType.FIX_PROPOSAL,))
    assert "100% a typo; isn't it?" in said.message
    assert run_as_conductor(erring, f"-- clean up; then end\n{FALLBACK}\n{EXHAUSTED.rstrip().removesuffix(';')}") == []
    conductor = erring.task(CONDUCTOR)
    assert conductor is not None
    assert conductor.state is TaskState.CONTEXT_RECOVERY
    assert erring.connection.execute("SELECT count(*) FROM crew_conductor") == [(0,)]


def test_what_breaks_the_contract_writes_nothing(erring: CrewTable) -> None:
    """One refused statement takes the others back, the message before it included."""
    wrong = FIX.replace("'fix_proposed'", "'complete'")
    with pytest.raises(IllegalTransition, match="the task is error; legal from there"):
        run_as_conductor(erring, wrong)
    assert erring.messages(TASK, types=(MessageType.FIX_PROPOSAL,)) == []
    assert erring.require_task(TASK).state is TaskState.ERROR


def test_a_worker_has_no_key(erring: CrewTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment of a launched worker the statements are refused."""
    monkeypatch.setenv(WORKER_VARIABLE, erring.get_fact(KEY_DIGEST_FACT) or "")
    with erring.clone() as fresh, pytest.raises(StoreError, match="does not act as its conductor"):
        run_as_conductor(fresh, FIX)


@pytest.mark.parametrize("text", ["", " ;; -- nothing\n", "BEGIN; SELECT 1;", "-- first\ncommit"])
def test_only_statements(erring: CrewTable, text: str) -> None:
    """Nothing, or a transaction of one's own, is named as wrong."""
    with pytest.raises(ConfigError, match="SQL"):
        run_as_conductor(erring, text)


def test_statements_are_split_at_their_ends() -> None:
    """Semicolons in quotes and comments end nothing; a comment alone is no statement."""
    text = "SELECT ';'; -- a; b\nSELECT 2;;\n/* c; */ SELECT 3"
    assert split_statements(text) == ["SELECT ';';", "-- a; b\nSELECT 2;", "/* c; */ SELECT 3"]


@pytest.mark.parametrize(
    "sql", ["SELEC 1", "SELECT nothing FROM orchestration_tasks", "SELECT * FROM absent", "SELECT 'x"]
)
def test_what_is_no_sql_is_named(erring: CrewTable, sql: str) -> None:
    """A statement that the database does not accept is an error that shows it, and nothing before it is written."""
    with pytest.raises(ConfigError, match="SQL that the database accepts") as raised:
        run_as_conductor(erring, f"{FIX} {sql}")
    assert sql in str(raised.value.value)
    assert erring.require_task(TASK).state is TaskState.ERROR
