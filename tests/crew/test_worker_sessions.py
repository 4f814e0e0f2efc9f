"""Sessions of a worker's agent: noted on this machine, continued by the next worker, forgotten with the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.domain.agent_session import AgentSession
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.crew.worker_sessions import WorkerSessions, note_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def sessions(*, task: str = "t-1", is_first: bool = False) -> WorkerSessions:
    made = WorkerSessions("/w/crew.db", task, is_first=is_first)
    made.instruct("write 7")
    return made


def failed(kind: Kind) -> Failure:
    return Failure(kind, False, "rule", "it broke", evidence=Evidence(text="it broke"))


def test_the_next_worker_continues_the_session() -> None:
    """It is told that the work was interrupted, without the instructions that the session has."""
    sessions(is_first=True).opened("claude", "s-1", continued=False)
    assert note_path("/w/crew.db", "t-1").stat().st_mode & 0o777 == 0o600
    after = sessions()
    assert after.to_continue() == AgentSession("claude", "s-1")
    assert after.prompt().startswith("Your session was interrupted")
    assert "write 7" not in after.prompt()
    assert sessions(task="t-2").to_continue() is None


def test_an_answer_and_new_instructions_are_told() -> None:
    """The conductor's answer is the text; instructions come with it if the session does not have them."""
    log = sessions(is_first=True)
    log.opened("claude", "s-1", continued=False)
    log.instruct("write 7", "the test fails")
    assert log.prompt() == "the test fails"
    log.instruct("write 8", "a person changed the task")
    assert log.prompt() == "a person changed the task\n\nwrite 8"
    log.opened("claude", "s-1", continued=True)
    assert log.to_continue() == AgentSession("claude", "s-1", 1)
    log.instruct("write 8", "the test fails")
    assert log.prompt() == "the test fails"


def test_what_ends_a_session() -> None:
    """A context that is full, and the completion of the task; a service that failed does not."""
    log = sessions(is_first=True)
    log.opened("claude", "s-1", continued=False)
    log.failed(failed(Kind.OVERLOADED))
    assert log.to_continue() is not None
    log.failed(failed(Kind.CONTEXT_LIMIT))
    assert log.to_continue() is None
    assert sessions().to_continue() is None
    log.forget()


def test_the_first_worker_of_a_task_continues_nothing() -> None:
    """A note of another crew in a table of the same path is not used: the task was never claimed here."""
    sessions(is_first=True).opened("claude", "s-1", continued=False)
    first = sessions(is_first=True)
    assert first.to_continue() is None
    assert first.is_first


@pytest.mark.parametrize(
    "note", ["", "[]", '{"program": "claude"}', '{"program":"c","session":"--x","continued":0,"told":""}']
)
def test_a_note_that_cannot_be_read_is_ignored(note: str) -> None:
    """The worker starts afresh."""
    path = note_path("/w/crew.db", "t-1")
    path.parent.mkdir(parents=True)
    path.write_text(note)
    assert sessions().to_continue() is None
