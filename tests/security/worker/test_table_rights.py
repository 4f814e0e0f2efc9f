"""A worker with raw SQL cannot take the rights of the conductor or of a person."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType, TaskState
from tests.store.crew.stranger import Refused, Stranger
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from rung.crew.conductor import Conductor
    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable

INSERT_TASK = (
    "INSERT INTO orchestration_tasks (task_id, state, command) VALUES ('{}', 'watching', '[\"touch\", \"x\"]')"
)
UPDATE = "UPDATE orchestration_tasks SET {} WHERE task_id = '{}'"
MESSAGE = (
    "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES ('mine', {}, 'm', '{}')"
)

BAD_IDS = ("../../../climb/x", "/etc/x", "a/b", ".hidden", "", "a b", "x" * 101, "caf\u00e9")
CONDUCTOR_COLUMNS = (
    "command = '[\"id\"]'", "workdir = '/'", "instruction_path = '/dev/zero'", "depends_on = '5'", "depends_on = '{'",
    "stale_after = 1e9", "note = 'asks: x'", "outcome = 'complete'", "history = '{'", "redispatches = 0 - 9",
    "priority = 9", "writes = '[9]'", "title = 'x'", "phase = 2", "plan_mark = 'NEW'", "generation = 9",
    "open_for_claim = 2", "error_tries = 9",
)  # fmt: skip


def test_a_worker_adds_no_tasks(worker: Stranger, table: CrewTable) -> None:
    """A row with a command that the plan does not have is refused, whatever its id."""
    for task_id in ("extra", *BAD_IDS):
        with pytest.raises(Refused, match=r"only the conductor adds tasks|task_id is"):
            worker.changed(INSERT_TASK.format(task_id))
    assert {row.task_id for row in table.tasks()} == {"mine", "other"}


def test_the_database_checks_task_ids(table: CrewTable, place: str) -> None:
    """An id that is no file name is refused by the database itself, to the conductor as well."""
    from rung.store.crew.conductor_key import load_key

    with Stranger(place, load_key(table.connection)) as conductor:
        for task_id in BAD_IDS:
            with pytest.raises(Refused, match="a task_id is 1 to 100 letters"), conductor.conducts():
                conductor.changed(INSERT_TASK.format(task_id))


def test_a_worker_changes_no_column_of_the_conductor(worker: Stranger) -> None:
    """Neither in its own row nor in another's: among them those that decide which command runs, where and when."""
    for column in CONDUCTOR_COLUMNS:
        for task_id in ("mine", "other"):
            with pytest.raises(Refused, match="a worker writes only state"):
                worker.changed(UPDATE.format(column, task_id))


def test_a_worker_does_not_approve_itself(worker: Stranger, lease: TaskLease, table: CrewTable) -> None:
    """Neither by the state, nor by the column, nor in one statement with a legal transition."""
    table.request_review(lease, "REVIEW", checkpoint=1)
    with pytest.raises(Refused, match="legal from there"):
        worker.changed(UPDATE.format("state = 'review_approved'", "mine"))
    with pytest.raises(Refused, match="a worker writes only state"):
        worker.changed(UPDATE.format("approved = 1", "mine"))
    assert table.require_task("mine").state is TaskState.NEEDS_REVIEW
    table.reply(table.require_task("mine"), TaskState.REVIEW_FAILED, "no", MessageType.REJECTION)
    with pytest.raises(Refused):
        worker.changed(UPDATE.format("state = 'working', approved = 1", "mine"))
    worker.changed(UPDATE.format("state = 'working'", "mine"))
    with pytest.raises(Refused):
        worker.changed(UPDATE.format("state = 'complete'", "mine"))


def test_a_warning_that_was_answered_is_no_approval(worker: Stranger, lease: TaskLease, table: CrewTable) -> None:
    """After the conductor let a worker with little context proceed, the worker still cannot complete unreviewed work."""
    table.warn_context(lease, "CONTEXT WARNING")
    table.reply(table.require_task("mine"), TaskState.REVIEW_APPROVED, "go on", MessageType.APPROVAL)
    with pytest.raises(Refused):
        worker.changed(UPDATE.format("approved = 1", "mine"))
    worker.changed(UPDATE.format("state = 'working'", "mine"))
    with pytest.raises(Refused):
        worker.changed(UPDATE.format("state = 'complete'", "mine"))


def test_a_worker_speaks_for_nobody_else(worker: Stranger) -> None:
    """A message in the name of the conductor, the watchdog or a person is refused, in any spelling."""
    for sender in ("'task-00'", "'person'", "'souffleur'", "'Task-00'", "' person '"):
        for kind in ("instruction", "approval", "warning"):
            with pytest.raises(Refused, match=r"a worker does not write as|without whitespace"):
                worker.changed(MESSAGE.format(sender, kind))


def test_a_worker_gives_no_answers(worker: Stranger) -> None:
    """The conductor's types of message are refused under the worker's own name, too."""
    for kind in ("approval", "fix_proposal", "rejection", "instruction", "exit_request", "system"):
        with pytest.raises(Refused, match="a worker does not write as"):
            worker.changed(MESSAGE.format("'s1'", kind))


def test_a_worker_claims_under_no_reserved_name(worker: Stranger) -> None:
    """A session called like the conductor could otherwise write its messages."""
    for name in ("task-00", "person"):
        with pytest.raises(Refused, match="a session is not named"):
            worker.changed(UPDATE.format(f"state = 'working', session_id = '{name}'", "other"))


def test_what_was_said_stays_said(worker: Stranger, table: CrewTable) -> None:
    """Messages are neither changed, deleted nor replaced, and no id hides the later ones."""
    (first, *_), before = table.messages(), table.messages()
    for sql in (
        "UPDATE orchestration_messages SET message = 'INSTRUCTION: run this'",
        "DELETE FROM orchestration_messages",
    ):
        with pytest.raises(Refused, match="messages are neither"):
            worker.changed(sql)
    columns = "(id, task_id, from_session, message, message_type)"
    taken = f"INSERT INTO orchestration_messages {columns} VALUES ({first.id}, 'mine', 's1', 'm', 'warning')"
    for sql in (taken, taken.replace(f"({first.id},", "(4611686018427387904,"), taken.replace(f"({first.id},", "(0,")):
        with pytest.raises(Refused):
            worker.changed(sql)
        if not worker.is_postgres:
            with pytest.raises(Refused):
                worker.changed(sql.replace("INSERT", "INSERT OR REPLACE"))
    assert table.messages() == before


def test_a_worker_leaves_the_reserved_rows_alone(worker: Stranger) -> None:
    """It neither ends the conductor by its row, nor keeps a dead one looking alive."""
    for task_id in ("task-00", "souffleur"):
        for change in ("state = 'complete'", "last_heartbeat = datetime('now')", "session_id = 'x'"):
            with pytest.raises(Refused, match="only the conductor changes the rows"):
                worker.changed(UPDATE.format(change, task_id))


def test_a_worker_writes_no_facts(worker: Stranger) -> None:
    """The plan with its commands, the stop request, launched processes and restarts are the conductor's."""
    for sql in (
        "INSERT INTO crew_facts (name, value) VALUES ('plan', '{}')",
        "INSERT INTO crew_facts (name, value) VALUES ('stop', 'now')",
        "UPDATE crew_facts SET value = '0'",
        "DELETE FROM crew_facts",
        "INSERT INTO crew_processes (session_id, task_id, launched_at, command) VALUES ('x', 'mine', 'now', '[]')",
        "INSERT INTO crew_restarts (at, task_id, why) VALUES (datetime('now'), 'other', 'dead')",
    ):
        with pytest.raises(Refused, match="only the conductor writes"):
            worker.changed(sql)


def test_a_worker_has_no_key(worker: Stranger) -> None:
    """Neither a guess nor the stored digest signs in; and the table has no key that could be read."""
    for key in ("", "0" * 32, "x", "' || (SELECT value FROM crew_facts WHERE name = 'key_digest') || '"):
        with pytest.raises(Refused, match="not the crew's key"):
            worker.changed(f"INSERT INTO crew_conductor (key) VALUES ('{key}')")
    assert worker.asked("SELECT count(*) FROM crew_conductor") == [(0,)]


def test_the_key_does_not_stay_in_the_file(worker: Stranger, table: CrewTable, tmp_path: Path, place: str) -> None:
    """After the conductor signed in, no byte of its key is in the database file or beside it."""
    from rung.store.crew.conductor_key import load_key

    for number in range(20):
        table.set_fact(f"fact {number}", "x" * 100)
    assert worker.asked("SELECT count(*) FROM crew_conductor") == [(0,)]
    key = load_key(table.connection).encode()
    if place.startswith("postgresql:"):
        return
    for file in tmp_path.glob("crew.db*"):
        assert key not in file.read_bytes(), file


def test_a_launched_worker_is_refused_the_key(table: CrewTable, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """In the environment of a worker of this crew the operator's commands are refused, though the file is readable."""
    from rung.core.domain.errors import StoreError
    from rung.store.crew.conductor_key import WORKER_VARIABLE

    monkeypatch.setenv(WORKER_VARIABLE, table.get_fact("key_digest") or "")
    with type(table).open(place) as opened, pytest.raises(StoreError, match="a worker of this crew does not act"):
        opened.set_fact("stop", "now")


@pytest.mark.parametrize(
    "place", ["sqlite"], indirect=True
)  # in PostgreSQL only the owner of a table drops its triggers
def test_a_table_without_its_triggers_is_not_conducted(
    worker: Stranger, table: CrewTable, conductor: Conductor
) -> None:
    """A worker that drops a trigger and changes a command has nothing run: the conductor stops and says why."""
    from rung.core.domain.errors import StoreError

    conductor.run_once()
    worker.changed("DROP TRIGGER crew_columns")
    worker.changed(UPDATE.format('command = \'["sleep", "600"]\'', "other"))
    for act in (conductor.handle_pending, conductor.supervise_and_dispatch):
        with pytest.raises(StoreError, match="crew_columns"):
            act()
    assert not table.running_sessions()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_trigger_of_a_worker_does_not_act_for_the_conductor(worker: Stranger, table: CrewTable) -> None:
    """A trigger that a worker creates would run with the conductor's rights: the conductor signs in nowhere where one is."""
    from rung.core.domain.errors import StoreError

    worker.changed(
        "CREATE TRIGGER mine AFTER UPDATE ON orchestration_tasks BEGIN UPDATE orchestration_tasks SET approved = 1; END"
    )
    with pytest.raises(StoreError, match="changed by another program: mine"):
        table.update_columns("other", title="x")
    assert worker.row("mine", "approved") == (0,)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("conflict", ["", "OR IGNORE", "OR REPLACE", "OR FAIL", "OR ROLLBACK"])
def test_no_setting_of_a_worker_gets_round_the_triggers(worker: Stranger, table: CrewTable, conflict: str) -> None:
    """Neither a conflict clause nor a setting of its own connection has a refused statement take effect."""
    for pragma in ("ignore_check_constraints", "recursive_triggers", "foreign_keys"):
        worker.changed(f"PRAGMA {pragma}=ON")
    for sql in (
        f"UPDATE {conflict} orchestration_tasks SET approved = 1 WHERE task_id = 'mine'",
        f"INSERT {conflict} INTO orchestration_tasks (task_id, state) VALUES ('extra', 'watching')",
        f"INSERT {conflict} INTO crew_conductor (key) VALUES ('{'0' * 32}')",
        f"INSERT {conflict} INTO crew_facts (name, value) VALUES ('stop', 'now')",
        f"INSERT {conflict} INTO orchestration_messages (id, message_type) VALUES (-1, 'warning')",
        f"INSERT {conflict} INTO orchestration_messages (id, message_type) VALUES (1, 'warning')",
    ):
        with suppress(Refused):
            assert worker.changed(sql) == 0, sql
    assert worker.row("mine", "approved") == (0,)
    assert {row.task_id for row in table.tasks()} == {"mine", "other"}
    assert table.get_fact("stop") is None
    assert {message.from_session for message in table.messages()} == {"task-00"}
    table.post_message("mine", "s1", "still possible", "warning")


def test_the_environment_of_a_worker_has_no_key(
    table: CrewTable, conductor: Conductor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conductor that got the key by its environment does not hand it on to a worker's command."""
    from rung.store.crew.conductor_key import KEY_VARIABLE, WORKER_VARIABLE, load_key
    from rung.store.crew.rows import NewTask

    monkeypatch.setenv(KEY_VARIABLE, key := load_key(table.connection))
    file = tmp_path / "environment"
    table.add_task(
        NewTask(task_id="spy", instruction="do it", command=("sh", "-c", f"env > {file}.new; mv {file}.new {file}"))
    )
    conductor.run_once()
    wait_until(file.exists)
    assert key not in file.read_text()
    assert f"{WORKER_VARIABLE}={table.get_fact('key_digest')}" in file.read_text().splitlines()


def test_without_the_key_one_is_not_the_conductor(
    table: CrewTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    """Another account, or another machine, works for the crew and does not conduct it, unless it is given the key."""
    from rung.core.domain.errors import StoreError
    from rung.store.crew.conductor_key import KEY_VARIABLE, load_key
    from rung.store.crew.rows import NewTask

    table.add_task(NewTask(task_id="mine", instruction="do it"))
    key = load_key(table.connection)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    with type(table).open(place) as opened:
        opened.heartbeat(opened.claim("mine", "s1"))
        with pytest.raises(StoreError, match=KEY_VARIABLE):
            opened.set_fact("stop", "now")
        monkeypatch.setenv(KEY_VARIABLE, key)
        opened.set_fact("stop", "now")
