"""Recovery inside workflows of DBOS, on a real PostgreSQL, in processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from dbos import DBOSClient, DBOSPortableJSONSerializer

import rung
from rung.core.domain.event_codec import to_json
from tests.store import postgres
from tests.waiting import DEADLINE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = [  # of steps: compatibility data, by which DBOS replays runs of older releases
    "rung.start",
    "rung.attempt.1",
    "DBOS.sleep",
    "rung.attempt.2",
    "rung.attempt.3",
    "second.start",
    "second.attempt.1",
]
ASKED = ["DBOS.setEvent", "DBOS.recv", "DBOS.sleep", "rung.ask.1.ended", "DBOS.setEvent"]


class App(NamedTuple):
    """One workflow of the application, its directory and its database."""

    url: str
    schema: str
    workflow: str
    directory: Path

    def start(self, scenario: str, **environment: str) -> subprocess.Popen[str]:
        """Start a process of the application."""
        arguments = (scenario, self.workflow, str(self.directory), self.url, self.schema)
        return subprocess.Popen(
            [sys.executable, "-m", "tests.adapters.durable.dbos_app", *arguments],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a process and return what it printed."""
        result: dict[str, Any] = json.loads(self.output(process, 0))
        return result

    def output(self, process: subprocess.Popen[str], returncode: int) -> str:
        """Wait for a process that ends so, and leave none behind. Return its output."""
        try:
            out, err = process.communicate(timeout=DEADLINE_SECONDS)
        finally:
            process.kill()
        assert process.returncode == returncode, err
        return out

    def run(self, scenario: str, **environment: str) -> dict[str, Any]:
        """Run the application to its end."""
        return self.result(self.start(scenario, **environment))

    def client(self) -> DBOSClient:
        """Return a client of the database, as a person's tool would use it."""
        return DBOSClient(
            system_database_url=self.url,
            dbos_system_schema=self.schema,
            serializer=DBOSPortableJSONSerializer(),
        )

    def attempts(self) -> list[str]:
        """Return what the attempts logged."""
        return (self.directory / "attempts.log").read_text().splitlines()

    def events(self) -> list[list[str]]:
        """Return the events that each process recorded, in the order of the processes."""
        files = sorted(self.directory.glob("events.*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        return [path.read_text().splitlines() for path in files]


@pytest.fixture(scope="module")
def database() -> Iterator[tuple[str, str]]:
    """URL of a PostgreSQL server and the schema of DBOS in it."""
    import psycopg

    schema = f"dbos_{os.getpid()}"
    given = os.environ.get(postgres.GIVEN)
    with nullcontext(given) if given else postgres.server() as url:
        yield url, schema
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
def app(database: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> App:
    return App(*database, request.node.name, tmp_path)


def test_a_killed_workflow_repeats_no_finished_attempt(app: App) -> None:
    """Killed at the start of each attempt, the workflow makes the same decisions and repeats only what was running."""
    for number in ("1", "2", "3"):
        app.output(app.start("ladder", DIES_IN=number), -signal.SIGKILL)
    result = app.run("ladder")
    assert result["first"] == {
        "id": app.workflow,
        "status": "recovered",
        "value": {"model": "large"},
        "attempts": 3,
        "steps": ["step 1", "step 2", "step 3"],
    }
    assert result["second"] == {
        "id": f"{app.workflow}/second",
        "status": "succeeded",
        "value": {"model": "small"},
        "attempts": 1,
        "steps": ["step 4"],
    }
    began_twice = [line for n in (1, 2, 3) for line in (f"{n} began", f"{n} began", f"{n} ended")]
    assert app.attempts() == [*began_twice, "4 began", "4 ended"]
    assert result["names"] == NAMES
    *cut, whole = app.events()
    assert len(cut) == 3
    for events in cut:
        assert events == whole[: len(events)]  # to the bit: times, waits and requests are those recorded first
    journal = rung.journal(app.directory / "journal.db")
    assert [json.dumps(to_json(event), sort_keys=True) for event in journal.events(app.workflow)] == whole
    journal.close()


def test_an_interrupted_attempt_with_side_effects_is_not_repeated(app: App) -> None:
    """Killed in an attempt that is not idempotent, the workflow ends partial instead of making the attempt again."""
    app.output(app.start("careful", DIES_IN="2"), -signal.SIGKILL)
    result = app.run("careful")
    assert (result["status"], result["steps"]) == ("partial", ["step 1"])
    assert app.attempts() == ["1 began", "1 ended", "2 began"]
    attempts = [f"rung.attempt.{n}{part}" for n in (1, 2) for part in (".began", "")]
    assert result["names"] == ["rung.start", *attempts[:2], "DBOS.sleep", *attempts[2:]]


def test_an_undisturbed_workflow(app: App) -> None:
    """A retry and a fallback are one step each, and a wait is a durable sleep of DBOS."""
    result = app.run("ladder")
    assert (result["first"]["status"], result["first"]["value"]) == ("recovered", {"model": "large"})
    assert result["names"] == NAMES
    assert app.attempts() == [f"{n} {what}" for n in (1, 2, 3, 4) for what in ("began", "ended")]


def test_a_message_answers_a_question(app: App) -> None:
    """The question is an event that outlives its process; a message to its topic answers it."""
    process, client = app.start("question"), app.client()
    try:
        question = wait_until(lambda: client.get_event(app.workflow, "rung.ask.1", timeout_seconds=0.1))
        process.kill()
        process.communicate()
        assert "which one?" in json.dumps(question)
        option = question["options"][0]["id"]
        process = app.start("question")
        client.send(app.workflow, option, "rung.ask.1")
        result = app.result(process)
        answered = client.get_event(app.workflow, "rung.ask.1", timeout_seconds=1)
    finally:
        process.kill()
        client.destroy()
    assert result["status"] == "recovered", result
    assert answered == {**question, "answer": option}
    assert [name for name in result["names"] if "attempt" not in name and name != "rung.start"] == ASKED


def test_a_question_without_an_answer_blocks(app: App) -> None:
    """Nobody answers in time: the outcome says so, and nothing is guessed."""
    result = app.run("question", ANSWER_SECONDS="0.2")
    assert result["status"] == "blocked"


def test_cancellation_passes(app: App) -> None:
    """A cancelled workflow interrupts its attempt, and ends cancelled instead of recovered."""
    process, client = app.start("cancelled"), app.client()
    try:
        wait_until((app.directory / "attempts.log").exists)
        client.cancel_workflow(app.workflow)
        result = app.result(process)
    finally:
        process.kill()
        client.destroy()
    assert result["status"] == "CANCELLED"
    assert app.attempts() == ["1 began", "cancelled"]


def test_an_attempt_has_a_time_limit(app: App) -> None:
    """An attempt beyond the policy's limit is interrupted and recorded as a timeout."""
    assert app.run("timeout") == {"kind": "timeout", "names": ["rung.start", "rung.attempt.1"]}
    assert app.attempts() == ["1 began", "cancelled"]


def test_plain_steps_take_is_retryable(app: App) -> None:
    """`should_retry=rung.is_retryable`: DBOS does not retry a quota, and retries an overload."""
    result = app.run("steps")
    assert (result["429"], result["529"]) == ("AttemptError", "DBOSMaxStepRetriesExceeded")
    assert app.attempts() == ["429insufficient_quota", "529", "529", "529"]


def test_misuse_is_an_error_before_anything_runs(app: App) -> None:
    """Outside a workflow, in a step, or with wrong arguments, nothing is recorded and the error says what is wrong."""
    result = app.run("misuse")
    assert [told.partition(":")[0] for told in result["told"]] == [
        "RungError",
        "TypeError",
        "TypeError",
        "ConfigError",
        "TypeError",
        "ConfigError",
    ]
    assert "@DBOS.workflow()" in result["told"][0]
    assert result["names"] == ["inner"]
