"""What must hold after a storm."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import SHUTDOWN_PREFIX, MessageType, TaskState
from rung.core.crew.pool import PARKED_PREFIX

if TYPE_CHECKING:
    from tests.crew.storm.crew_storm import Storm

CLAIM_SECONDS = (
    0.5  # after its claim, a worker may be signalled as one that has not claimed: nobody can see both at once
)
ENDED_RIGHTLY = ("loops", "stands still")  # faults of a worker that the conductor may end
ANSWERED = (MessageType.ERROR, MessageType.CONTEXT_WARNING, MessageType.REVIEW_REQUEST)


def check_every_task_ended_once(storm: Storm) -> None:
    """Each task is complete with one completion, or escalated with its report."""
    assert storm.table is not None
    rows = {row.task_id: row for row in storm.table.tasks()}
    assert rows.keys() == storm.tasks.keys()
    for name, row in rows.items():
        completions = storm.messages(name, MessageType.COMPLETION)
        if row.state is TaskState.COMPLETE:
            assert (row.outcome, len(completions)) == ("complete", 1), row
        else:
            assert (row.state, row.outcome, completions) == (TaskState.EXITED, "escalated", []), row
            assert (storm.runtime / "escalations" / f"{name}.md").stat().st_size > 0


def check_every_worker_was_told(storm: Storm) -> None:
    """Every worker, the first and each successor, was given the whole task text and the hand-over before it."""
    for name, task in storm.tasks.items():
        files = (storm.folder / "received").glob(f"{name}.*")
        told = [json.loads(file.read_text()) for file in sorted(files, key=lambda file: int(file.name.split(".")[1]))]
        handed_over = "\n".join(storm.messages(name, MessageType.HANDOFF))
        left = ""
        for number, record in enumerate(told, 1):
            if record.get("unclaimed"):
                continue
            assert task.text in record["text"], f"worker {number} of {name} was told:\n{record['text']}"
            assert left in record["text"], f"worker {number} of {name} was not given {left!r}:\n{record['text']}"
            done = f"the walls of {name} ({number})"
            left = done if done in handed_over else ""


def check_evidence(storm: Storm) -> None:
    """The work of every complete task is there, and its last review was approved."""
    assert storm.table is not None
    for row in storm.table.tasks(TaskState.COMPLETE):
        out = storm.folder / "out" / row.task_id
        assert out.exists(), f"{row.task_id} is complete, but nothing was done"
        assert storm.tasks[row.task_id].word in out.read_text(), row.task_id
        assert storm.messages(row.task_id, MessageType.APPROVAL), row.task_id


def check_no_message_is_lost(storm: Storm) -> None:
    """Every accepted message is in the table, and every report was answered or its task taken away."""
    assert storm.table is not None
    for name in storm.tasks:
        kept = [(message.message_type.value, message.message) for message in storm.table.messages(name)]
        file = storm.folder / "sent" / f"{name}.jsonl"
        for kind, body in map(json.loads, file.read_text().splitlines() if file.exists() else ()):
            assert any(kind == other and body in text for other, text in kept), (name, kind, body)
        reports = [place for place, (kind, _) in enumerate(kept) if kind in ANSWERED]
        answers = [place for place, (kind, _) in enumerate(kept) if kind not in ANSWERED]
        assert not reports or answers[-1] > reports[-1], (name, kept[-1])


def check_nobody_healthy_was_ended(storm: Storm) -> None:
    """A signalled worker had lost its task before, or was marked; only a bad one was evicted. No rule was broken."""
    assert storm.table is not None
    given_up = {row.task_id for row in storm.table.tasks() if row.outcome == "escalated"}
    for file in (storm.folder / "ended").iterdir():
        for record in map(json.loads, file.read_text().splitlines()):
            assert "accepted" not in record, (file.name, record)
            if record["mine"] and record["age"] > CLAIM_SECONDS:
                assert record["state"] in ("exited", "complete"), (file.name, record)
                is_bad = record["fault"] in ENDED_RIGHTLY or file.stem in given_up
                assert record["state"] == "complete" or is_bad or has_left(storm, file.stem, record), (
                    file.name,
                    record,
                )


def has_left(storm: Storm, task: str, record: dict[str, Any]) -> bool:
    """Return whether the worker left by itself, in a shutdown, or when it was asked to wait for its pool."""
    note = str(record["note"])
    if not note.startswith(PARKED_PREFIX):
        return note == "" or note.startswith(SHUTDOWN_PREFIX)
    assert storm.table is not None
    handovers = storm.table.messages(task, types=(MessageType.HANDOFF,))
    return any(message.from_session == record["session"] for message in handovers)


def check_reports(storm: Storm, code: int) -> None:
    """`rung crew run` says what is true."""
    assert storm.table is not None
    rows = storm.table.tasks()
    complete = sum(row.state is TaskState.COMPLETE for row in rows)
    said = storm.fronts[-1][1].read_text()
    assert f"{complete} of {len(rows)} tasks complete" in said, said
    assert code == (0 if complete == len(rows) else 3 if complete else 4), said


def check_nothing_is_left(storm: Storm) -> None:
    """No process and no PID file of a worker is left."""
    until = time.monotonic() + 20
    while storm.processes() and time.monotonic() < until:
        time.sleep(0.1)
    assert storm.processes() == [], storm.log()
    names = {file.stem for file in (storm.runtime / "pids").iterdir()}
    assert not names - {"conductor", "souffleur"}, names  # killed by the test, they leave theirs


def check_all(storm: Storm, code: int) -> None:
    """Check every invariant."""
    check_nothing_is_left(storm)
    check_every_task_ended_once(storm)
    check_every_worker_was_told(storm)
    check_evidence(storm)
    check_no_message_is_lost(storm)
    check_nobody_healthy_was_ended(storm)
    check_reports(storm, code)
