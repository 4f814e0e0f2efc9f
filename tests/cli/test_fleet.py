"""`rung fleet init`, `status` and `drain`, over a real PostgreSQL and with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest
from click.testing import CliRunner

from rung.cli.fleet.status_table import NO_FLEET, fleet_lines
from rung.cli.group import root
from rung.store import open_journal
from rung.store.durable_runs import DurableRunStore
from rung.store.fleet.executors import ExecutorRole, announce, beat, drain, executors, leave, new_executor
from rung.store.fleet.overview import load_overview, overview_json
from tests.store.conftest import postgres_server, postgres_url
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

    from rung.store.journal.journal import Journal

__all__ = ["postgres_server", "postgres_url"]  # fixtures
_NUMBERS = count(1)


def fleet(*words: str, code: int = 0) -> Result:
    """Run a command of the group in this process."""
    done = CliRunner().invoke(root, ["fleet", *words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def role(postgres_server: str) -> Iterator[str]:
    """Name of a role that does not exist, and is dropped at the end."""
    name = f"app-{os.getpid()}-{next(_NUMBERS)}"
    yield name
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone():
            connection.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


def _as_role(url: str, role: str) -> str:
    assert "rung@" in url
    return url.replace("rung@", f"{role}@", 1)


# -- init ---------------------------------------------------------------------------------------------


def test_a_role_can_work_and_cannot_change_the_schema(postgres_url: str, role: str) -> None:
    """The application role reads and writes a journal, and has no right to create, alter, drop or truncate."""
    said = fleet("init", "--url", postgres_url, "--role", role).output
    assert f"role {role}: may change rows, and nothing else" in said
    assert "it is new and has no password" in said
    theirs = _as_role(postgres_url, role)
    with open_journal(theirs) as journal:
        announce(journal, new_executor(ExecutorRole.WORKER))
        journal.runs.claim("a", "report", {}).finish({"status": "succeeded"})
        assert [each.role for each in executors(journal)] == ["worker"]
    with psycopg.connect(theirs, autocommit=True) as connection:
        for statement in (
            "CREATE TABLE mine (a int)",
            "ALTER TABLE run ADD COLUMN a int",
            "DROP TABLE run",
            "TRUNCATE run",
            "CREATE INDEX mine ON run (id)",
            "UPDATE rung_schema SET version = 9",
            "DELETE FROM rung_schema",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_init_again_changes_nothing_and_takes_rights_away(postgres_url: str, role: str) -> None:
    """A second init keeps rows and role, and takes a right away that the role should not have."""
    fleet("init", "--url", postgres_url, "--role", role)
    with open_journal(postgres_url) as journal:
        kept = announce(journal, new_executor(ExecutorRole.WORKER)).id
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        (schema,) = owner.execute("SELECT current_schema()").fetchone() or ("",)
        owner.execute(f'GRANT CREATE ON SCHEMA {schema} TO "{role}"; GRANT TRUNCATE ON run TO "{role}"')
        assert "it is new" not in fleet("init", "--url", postgres_url, "--role", role).output
        owner.execute("CREATE TABLE of_a_later_version (a int)")  # a later migration of the owner
    with psycopg.connect(_as_role(postgres_url, role), autocommit=True) as theirs:
        theirs.execute("INSERT INTO of_a_later_version VALUES (1)")
        for statement in ("CREATE TABLE mine (a int)", "TRUNCATE run"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                theirs.execute(statement)
    with open_journal(postgres_url) as journal:
        assert [each.id for each in executors(journal)] == [kept]


def test_the_printed_sql_is_what_init_does(postgres_url: str, role: str) -> None:
    """--print-sql changes nothing; its statements make the same tables and rights as the command."""
    printed = fleet("init", "--url", postgres_url, "--role", role, "--print-sql").stdout
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        assert owner.execute("SELECT current_schema()").fetchone() == (None,)
        owner.execute(printed)
        by_hand = _tables(owner, role)
        (schema,) = owner.execute("SELECT current_schema()").fetchone() or ("",)
        owner.execute(f"DROP SCHEMA {schema} CASCADE")
        fleet("init", "--url", postgres_url, "--role", role)
        assert _tables(owner, role) == by_hand
        assert len(by_hand) > 50


def _tables(connection: psycopg.Connection[tuple[object, ...]], role: str) -> list[tuple[object, ...]]:
    """Return the columns of all tables, and what the role may do with them."""
    return connection.execute(
        "SELECT table_name, column_name, data_type,"
        " has_table_privilege(%(role)s, quote_ident(table_name), 'INSERT'),"
        " has_table_privilege(%(role)s, quote_ident(table_name), 'TRUNCATE')"
        " FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2",
        {"role": role},
    ).fetchall()


def test_the_owner_is_no_application_role(postgres_url: str) -> None:
    """The owner or a superuser as application role is refused, since it can change the schema anyway."""
    said = fleet("init", "--url", postgres_url, "--role", "rung", code=2).output
    assert said == "rung: --role: 'rung' is invalid; must be another role than the schema's owner, and no superuser\n"


@pytest.mark.parametrize("name", ["", "pg_mine", "x" * 64])
def test_a_name_that_no_role_can_have(name: str) -> None:
    """A wrong role name is refused before anything is connected to."""
    assert "--role: " in fleet("init", "--url", "postgresql://127.0.0.1:1/db", "--role", name, code=2).output


def test_a_role_with_a_strange_name_is_quoted(postgres_url: str, role: str) -> None:
    """A name with quotes and spaces is one name, in the printed SQL and in the executed."""
    fleet("init", "--url", postgres_url, "--role", role)
    said = fleet("init", "--url", postgres_url, "--print-sql", "--role", 'a"; DROP ROLE b').stdout
    assert 'TO "a""; DROP ROLE b";' in said


def test_a_server_that_is_away(tmp_path: Path) -> None:
    """An unreachable server is exit code 75 and one line without the password."""
    done = fleet("init", "--url", "postgresql://me:secret@127.0.0.1:1/db", code=75)
    assert done.output.startswith("rung: the server cannot be reached: postgresql://me@127.0.0.1:1/db: ")
    assert "secret" not in done.output
    assert len(done.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_fleet_needs_postgresql(tmp_path: Path) -> None:
    """Without a PostgreSQL URL, init says what is missing."""
    done = fleet("init", "--url", str(tmp_path / "journal.db"), code=2)
    assert "a postgresql:// URL, or RUNG_JOURNAL set to one" in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_role_that_may_not_create_the_schema_is_told_who_may(postgres_url: str, role: str) -> None:
    """On a database that nobody prepared, or that has an older schema, commands of the application role name `init`."""
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f'CREATE ROLE "{role}" LOGIN')
    theirs = _as_role(postgres_url, role)
    words = (("init", "--url", theirs), ("status", "--journal", theirs))
    for each in words:
        said = fleet(*each, code=2).output
        assert "permission denied for database" in said
        assert said.endswith("its owner does, with `rung fleet init`\n")
    fleet("init", "--url", postgres_url, "--role", role)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("UPDATE rung_schema SET version = version - 1")
    for each in words:
        assert fleet(*each, code=2).output.endswith("its owner does, with `rung fleet init`\n")


_WORKFLOW = """
import sys
from dbos import DBOS
from rung.adapters.engines.dbos.engine import SCHEMA
DBOS(config={"name": "test", "system_database_url": sys.argv[1], "dbos_system_schema": SCHEMA, "run_migrations": False,
             "log_level": "ERROR"})

@DBOS.workflow()
def add(a: int, b: int) -> int:
    return DBOS.run_step({"name": "add"}, lambda: a + b)

DBOS.launch()
print(add(2, 3))
DBOS.destroy()
"""


def test_dbos_works_with_the_application_role(role: str) -> None:
    """With the engine dbos, its tables have a schema of their own, in which a workflow runs with the role's rights."""
    from tests.store import postgres

    with postgres.server() as url:
        for _ in range(2):
            said = fleet("init", "--url", url, "--engine", "dbos", "--role", role).output
        assert "tables of DBOS in schema rung_dbos" in said
        theirs = _as_role(url, role)
        done = subprocess.run([sys.executable, "-c", _WORKFLOW, theirs], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split()[-1:]) == (0, ["5"]), done.stderr
        with psycopg.connect(theirs, autocommit=True) as connection:
            assert connection.execute("SELECT count(*) FROM rung_dbos.workflow_status").fetchone() == (1,)
            for statement in ("CREATE TABLE rung_dbos.mine (a int)", "TRUNCATE rung_dbos.workflow_status"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)


# -- status -------------------------------------------------------------------------------------------


@pytest.fixture
def journal(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    """Journal of a fleet, which is also the default one."""
    monkeypatch.setenv("RUNG_JOURNAL", postgres_url)
    with open_journal(postgres_url) as opened:
        yield opened


def test_the_status_of_nobody(journal: Journal) -> None:
    """Without executors, the status says how to start one."""
    assert fleet("status").output == NO_FLEET + "\n"
    assert executors(journal) == []


def test_the_status_has_everything_of_the_overview(journal: Journal) -> None:
    """Text and JSON show executors with age and runs, open runs by owner, and queues with their lag."""
    worker = announce(journal, new_executor(ExecutorRole.WORKER, engine="embedded"))
    beat(journal, replace(worker, detail={"runs": 2}))
    journal.runs.claim("a", "report", {})
    journal.runs.submit("b", "mail", {})
    shown = json.loads(fleet("status", "--json").output)
    assert [(each["id"], each["health"], each["runs"]) for each in shown["executors"]] == [(worker.id, "live", 2)]
    assert [(each["task"], each["executor"], each["open"]) for each in shown["runs"]] == [
        ("mail", "", 1),
        ("report", worker.id, 1),
    ]
    assert [(each["name"], each["waiting"]) for each in shown["queues"]] == [("mail", 1)]
    text = fleet("status").output
    for word in (worker.id[:8], "worker", "report", "mail", "nobody", "waiting", "lag"):
        assert word in text


def test_the_lines_of_a_status(journal: Journal) -> None:
    """Late leases, draining and dead executors, and versions side by side are said in words."""
    old = announce(journal, replace(new_executor(ExecutorRole.WORKER, executor_id="aaaaaaaa1"), version="1.0"), 1000.0)
    announce(journal, replace(new_executor(ExecutorRole.GATEWAY, executor_id="bbbbbbbb1"), version="1.1"), 1025.0)
    announce(journal, replace(new_executor(ExecutorRole.WORKER, executor_id="cccccccc1"), version="0.9"), 900.0)
    drain(journal, old.id, 1001.0)
    DurableRunStore(journal, now=lambda: 1000.0).claim("invoice-17", "bill", {})
    lines = list(fleet_lines(overview_json(load_overview(journal, 1026.0)), 200))
    text = "\n".join(lines)
    assert [line.split()[0] for line in lines[:4]] == ["executor", "bbbbbbbb", "cccccccc", "aaaaaaaa"]
    assert "draining, late" in lines[3]
    assert "dead" in lines[2]
    assert "versions side by side: 1.0 (1), 1.1 (1)" in text
    assert "leases that were not renewed:" in text
    assert next(line for line in lines if line.startswith("invoice-17")).endswith("in 4 s")
    assert all(len(line) <= 60 for line in fleet_lines(overview_json(load_overview(journal, 1026.0)), 60))


def test_the_status_is_watched_until_it_is_interrupted(journal: Journal, postgres_url: str) -> None:
    """--watch prints again and again, and ends with 0 at Ctrl-C."""
    import signal

    words = [sys.executable, "-m", "rung", "fleet", "status", "--watch", "--json", "--interval", "0.1"]
    environment = {**os.environ, "RUNG_JOURNAL": postgres_url, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["executors"] == []
        name = announce(journal, new_executor(ExecutorRole.WORKER)).id
        seen = next(line for line in process.stdout if name in line)
        assert json.loads(seen)["executors"][0]["id"] == name
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == 0


# -- drain --------------------------------------------------------------------------------------------


def test_one_executor_is_drained_by_the_beginning_of_its_id(journal: Journal) -> None:
    """The beginning of an id is enough when it fits one executor, and an ambiguous or unknown one is refused."""
    for name in ("abc1", "abd2"):
        announce(journal, new_executor(ExecutorRole.WORKER, executor_id=name))
    assert "draining worker abc1 on " in fleet("drain", "abc").output
    assert {each.id: each.state.value for each in executors(journal)} == {"abc1": "draining", "abd2": "live"}
    assert "must be the id of one live executor, or its beginning: abc1, abd2" in fleet("drain", "ab", code=2).output
    assert "must be the id of one live executor, or its beginning: abc1, abd2" in fleet("drain", "x", code=2).output
    assert "must be the id of one live executor" in fleet("drain", "", code=2).output


def test_all_or_a_host_are_drained_without_the_dead(journal: Journal) -> None:
    """--host and --all order the live executors that are meant; a dead one gets no order."""
    for name, host in (("a1", "north"), ("a2", "south"), ("a3", "south")):
        announce(journal, replace(new_executor(ExecutorRole.WORKER, executor_id=name), host=host))
    announce(journal, replace(new_executor(ExecutorRole.WORKER, executor_id="a4"), host="south"), 1000.0)
    said = fleet("drain", "--host", "south").output
    assert [line.split()[2] for line in said.splitlines()] == ["a2", "a3"]
    assert "must be a host with live executors: north, south" in fleet("drain", "--host", "west", code=2).output
    assert [line.split()[2] for line in fleet("drain", "--all").output.splitlines()] == ["a1", "a2", "a3"]


@pytest.mark.parametrize("words", [(), ("a1", "--all"), ("--all", "--host", "h"), ("a1", "--host", "h")])
def test_who_is_drained_must_be_said_once(words: tuple[str, ...]) -> None:
    """No choice or two of them is wrong usage."""
    assert "one executor, or --all, or --host HOST, and only one of them" in fleet("drain", *words, code=2).output


def test_nobody_is_left_to_drain(journal: Journal) -> None:
    """--all without executors is no error."""
    assert fleet("drain", "--all", "--wait", "0").output == "no executor to drain\n"
    assert executors(journal) == []


def test_drain_waits_until_they_have_left(journal: Journal) -> None:
    """--wait returns when the executors have left, and exits with 75 when one has not in time."""
    made = announce(journal, new_executor(ExecutorRole.WORKER))
    done = fleet("drain", made.id, "--wait", "0", code=75)
    assert f"rung: still there after 0 s: worker {made.id}" in done.output

    willing = announce(journal, new_executor(ExecutorRole.WORKER))

    def obey() -> None:
        wait_until(lambda: beat(journal, willing).state == "draining")
        leave(journal, willing.id)

    worker = threading.Thread(target=obey)
    worker.start()
    fleet("drain", willing.id, "--wait", "120")
    worker.join()
