"""One bad row is set aside and told; the other tasks go on."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from rung.core.crew.liveness import RestartLimits
from rung.crew.judgement import CommandJudgement
from rung.store.crew.rows import NewTask
from tests.store.crew.stranger import Refused, Stranger

if TYPE_CHECKING:
    from pathlib import Path

    from rung.crew.conductor import Conductor
    from rung.store.crew.table import CrewTable

SLEEP = ("sleep", "600")


@pytest.fixture
def crew(table: CrewTable) -> CrewTable:
    """A table with a good task, which comes after the bad one in every order."""
    table.add_task(NewTask(task_id="bad", instruction="do it", command=SLEEP, priority=9))
    table.add_task(NewTask(task_id="good", instruction="do it", command=SLEEP))
    return table


def turns(conductor: Conductor, number: int = 3) -> None:
    for _ in range(number):
        conductor.run_once()


def is_set_aside(table: CrewTable, word: str) -> bool:
    row = table.require_task("bad")
    return (row.state, row.outcome) == (TaskState.EXITED, "escalated") and word in row.note


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("depends_on", "'5'"),
        ("depends_on", "'{'"),
        ("depends_on", "'" + "[" * 100_000 + "'"),
        ("command", "'7'"),
        ("writes", "'{}'"),
        ("history", "'{'"),
    ],
)
def test_a_row_with_a_bad_list_stops_nobody(
    crew: CrewTable, place: str, conductor: Conductor, column: str, value: str
) -> None:
    """A list that is none has the task given up with the reason, and the other task gets its worker."""
    with Stranger(place) as writer:
        writer.force("bad", **{column: value})
    turns(conductor)
    assert is_set_aside(crew, column)
    assert set(crew.running_sessions()) == {"good"}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)  # PostgreSQL's columns have types
@pytest.mark.parametrize("claimed", [False, True])
def test_a_bad_number_stops_nobody(crew: CrewTable, place: str, conductor: Conductor, *, claimed: bool) -> None:
    """A `stale_after` that is no number has the task given up, before it is claimed and after."""
    if claimed:
        crew.claim("bad", "s1")
    with Stranger(place) as writer:
        writer.force("bad", stale_after="'x'")
    turns(conductor)
    assert is_set_aside(crew, "stale_after")
    assert set(crew.running_sessions()) == {"good"}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)  # PostgreSQL takes no such text
@pytest.mark.parametrize("column", ["progress", "last_error", "worked_by", "report_path"])
def test_a_text_that_is_not_utf8_stops_nobody(crew: CrewTable, place: str, conductor: Conductor, column: str) -> None:
    """Bytes that are no text, from a worker's own SQLite, are read as replacement characters."""
    crew.claim("bad", "s1")
    with Stranger(place) as worker:
        worker.changed(f"UPDATE orchestration_tasks SET {column} = CAST(x'ff41' AS TEXT) WHERE task_id = 'bad'")
        worker.changed(
            "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
            " VALUES ('bad', 's1', CAST(x'ff' AS TEXT), 'warning')"
        )
    turns(conductor)
    assert getattr(crew.require_task("bad"), column) == "\N{REPLACEMENT CHARACTER}A"
    assert crew.messages("bad")[-1].message == "\N{REPLACEMENT CHARACTER}"
    assert set(crew.running_sessions()) == {"good"}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "value", ["x'ff'", "zeroblob(100000)", "CAST(zeroblob(2000000) AS TEXT)", "printf('%.*c', 70000, 'x')"]
)
def test_a_worker_stores_no_bytes_and_no_flood(crew: CrewTable, place: str, value: str) -> None:
    """Values of a type or a size that a reader cannot take are refused; so are such messages."""
    crew.claim("bad", "s1")
    with Stranger(place) as worker:
        for column in ("progress", "last_error", "last_heartbeat", "retry_count"):
            with pytest.raises(Refused, match="a text has at most"):
                worker.changed(f"UPDATE orchestration_tasks SET {column} = {value} WHERE task_id = 'bad'")
        with pytest.raises(Refused, match="a text has at most"):
            worker.changed(
                "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
                f" VALUES ('bad', {value}, 'm', 'warning')"
            )


@pytest.mark.parametrize("kind", ["directory", "device", "pipe", "missing", "huge", "not text"])
def test_an_instruction_that_is_no_text_file_stops_nobody(
    crew: CrewTable, tmp_path: Path, conductor: Conductor, kind: str
) -> None:
    """A directory, an endless device, a pipe without a writer, a file of a gigabyte: the task is given up."""
    path = tmp_path / "instruction"
    if kind == "directory":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    elif kind == "not text":
        path.write_bytes(b"\xff\xfe\x00")
    crew.update_columns("bad", instruction_path=str(path))
    turns(conductor)
    assert is_set_aside(crew, "instructions cannot be used")
    assert set(crew.running_sessions()) == {"good"}


def test_a_row_that_cannot_be_given_up_is_ignored(
    crew: CrewTable, place: str, conductor: Conductor, log: list[str]
) -> None:
    """Where even the escalation fails, the row is passed over and told once."""
    lease = crew.claim("bad", "s1")
    crew.report_error(lease, "boom")
    with Stranger(place) as writer:
        writer.force("bad", history="'[{}]'")  # a list, but of no event
    for _ in range(3):
        turns(conductor)
    assert set(crew.running_sessions()) == {"good"}
    assert sum("ignored from now on" in line for line in log) == 1


def test_deaths_of_one_row_do_not_halt_the_others(crew: CrewTable, conductor: Conductor) -> None:
    """A worker that dies at once, each time, has its own task given up; the others are dispatched."""
    conductor.crew.settings = replace(conductor.crew.settings, limits=RestartLimits(redispatches=6))
    crew.update_columns("bad", command=["false"])
    until = time.monotonic() + 60
    while crew.require_task("bad").outcome != "escalated":
        assert time.monotonic() < until
        conductor.run_once()
    assert not crew.get_fact("halted")
    crew.add_task(NewTask(task_id="later", instruction="do it", command=SLEEP))
    turns(conductor, 1)
    assert set(crew.running_sessions()) == {"good", "later"}


def test_deaths_of_several_rows_halt_the_crew(crew: CrewTable, conductor: Conductor) -> None:
    """Three tasks whose workers die at once have a common cause: nothing more is dispatched."""
    for name in ("bad", "also-bad", "worse"):
        if name != "bad":
            crew.add_task(NewTask(task_id=name, instruction="do it"))
        crew.update_columns(name, command=["false"])
    until = time.monotonic() + 60
    while not crew.get_fact("halted"):
        assert time.monotonic() < until
        conductor.run_once()
    assert "3 tasks died" in (crew.get_fact("halted") or "")


def test_rewritten_instructions_stay_in_the_crew_directory(
    crew: CrewTable, tmp_path: Path, conductor: Conductor
) -> None:
    """The judge's text for an unusable instruction file is written beside the crew's other files, never in its place."""
    outside = tmp_path / "outside.md"
    outside.write_text("")
    crew.update_columns("bad", instruction_path=str(outside))
    conductor.crew.judgement = CommandJudgement(["sh", "-c", """echo '{"instructions": "do that"}'"""])
    written = tmp_path / "crew" / "instructions" / "bad.md"
    until = time.monotonic() + 60
    while crew.require_task("bad").instruction_path != str(written):
        assert time.monotonic() < until
        conductor.run_once()
        conductor.crew.helpers.wait(0.1)
    assert outside.read_text() == ""
    assert written.read_text() == "do that"
