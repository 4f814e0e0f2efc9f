"""Sessions of agents: found in files and output, repaired as copies, started and continued by command lines."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from rung.adapters.system.agent_sessions.agent_sessions import AgentSessions
from rung.adapters.system.agent_sessions.changed_files import changed_files
from rung.adapters.system.agent_sessions.session_files import continuable_session, find_session_file
from rung.adapters.system.agent_sessions.session_id_reader import SessionIdReader
from rung.core.agents.agent_call import Transcript, json_field
from rung.core.domain.agent_session import AgentSession
from rung.core.domain.errors import AttemptError
from tests.core.agents.test_transcripts import CLAUDE, CODEX, OLD, dumped

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)


class Log:
    """Sessions of one agent in memory."""

    def __init__(self, *, known: AgentSession | None = None, is_first: bool = True) -> None:
        self.known = known
        self.is_first = is_first
        self.seen: list[tuple[str, str, bool]] = []

    def to_continue(self) -> AgentSession | None:
        return self.known

    def prompt(self) -> str:
        return "go on"

    def opened(self, program: str, session: str, *, continued: bool) -> None:
        self.seen.append((program, session, continued))


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def test_a_damaged_session_is_continued_as_a_copy(tmp_path: Path) -> None:
    """The agent's own file stays as it is; the copy lies beside it under the id that is returned, and only its owner reads it."""
    claude = write(tmp_path / ".claude" / "projects" / "-w" / f"{OLD}.jsonl", dumped(CLAUDE)[:-20])
    codex = write(
        tmp_path / ".codex" / "sessions" / "2026" / "11" / "17" / f"rollout-2026-11-17T04-28-52-{OLD}.jsonl",
        dumped(CODEX),
    )
    for transcript, path in ((Transcript.CLAUDE_CODE, claude), (Transcript.CODEX, codex)):
        before = path.read_bytes()
        copy = continuable_session(transcript, OLD)
        assert str(UUID(copy)) == copy != OLD
        made = find_session_file(transcript, copy)
        assert made is not None
        assert made.name == path.name.replace(OLD, copy)
        assert made.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes() == before
        assert continuable_session(transcript, copy) == copy  # nothing is left to repair
        assert len(list(path.parent.iterdir())) == 2


def test_which_sessions_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session without a file, or with nothing in it, cannot; one in the directory that the agent was given can."""
    assert continuable_session(Transcript.NONE, "any") == "any"
    assert continuable_session(Transcript.CLAUDE_CODE, OLD) == ""
    assert continuable_session(Transcript.CLAUDE_CODE, "../../x") == ""
    write(tmp_path / "c" / "projects" / "-w" / f"{OLD}.jsonl", dumped(CLAUDE[:4] + CLAUDE[4:5]))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "c"))
    assert continuable_session(Transcript.CLAUDE_CODE, OLD) == OLD
    write(tmp_path / "x" / "sessions" / "2026" / "11" / "17" / f"rollout-a-{OLD}.jsonl", b'{"type":"session_')
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "x"))
    assert continuable_session(Transcript.CODEX, OLD) == ""


def test_the_id_is_found_wherever_the_output_is_cut() -> None:
    """The first id of either stream is passed on once, however its bytes arrive, also at the end without a line break."""
    text = b'noise\n{"id": "a-1"}\n{"id": "a-2"}\n'
    for size in (1, 3, 100):
        found: list[str] = []
        reader = SessionIdReader(lambda line: (json_field("id").search(line) or ["", ""])[1], found.append)
        for at in range(0, len(text), size):
            reader.read("output", text[at : at + size])
            reader.read("errors", b"no id here\n")
        reader.finish()
        assert found == ["a-1"]
    reader = SessionIdReader(lambda line: (json_field("id").search(line) or ["", ""])[1], found.append)
    reader.read("errors", b'{"id": "a-3"}')
    assert found == ["a-1"]
    reader.finish()
    assert found == ["a-1", "a-3"]


def test_an_agent_is_started_with_an_id_and_continued_by_it(tmp_path: Path) -> None:
    """The id is recorded before the agent runs, and the prompt of a continued session is its whole input."""
    told: list[str] = []
    sessions, log = AgentSessions(report=told.append), Log()
    first = sessions.continued(["claude", "-p", "x"], log)
    ((program, session, continued),) = log.seen
    assert (program, continued, told) == ("claude", False, [])
    assert list(first.words) == ["claude", "--session-id", session, "-p", "x"]
    assert first.is_fresh
    write(tmp_path / ".claude" / "projects" / "-w" / f"{session}.jsonl", dumped(CLAUDE[:5]))
    log = Log(known=AgentSession("claude", session), is_first=False)
    second = sessions.continued(["claude", "-p", "--input-format", "stream-json"], log)
    assert list(second.words) == ["claude", "--resume", session, "-p", "--input-format", "stream-json"]
    assert json.loads(second.prompt or "")["message"]["content"] == "go on"
    assert log.seen == [("claude", session, True)]
    assert told == [f"continues session {session} of claude"]


def test_where_nothing_can_be_continued_a_session_is_started(tmp_path: Path) -> None:
    """A lost file, another program, or an id that was used before: the agent gets a new id."""
    for known in (AgentSession("claude", OLD), AgentSession("codex", OLD)):
        log = Log(known=known, is_first=False)
        command = AgentSessions().continued(["claude", "-p", "--session-id", OLD], log)
        assert command.is_fresh
        assert log.seen[0][1] != OLD
        assert log.seen[0][1] in command.words
    assert AgentSessions().continued(["claude", "-p", "--session-id", OLD], Log()).session == OLD
    assert AgentSessions().continued(["claude", "-p", "--resume", OLD], Log(is_first=False)).session == OLD


def test_commands_that_are_no_agents_are_not_changed() -> None:
    """Without a known agent, or without sessions, the command is what the user typed."""
    for words, log in ((["make"], Log()), (["claude", "-p"], None)):
        command = AgentSessions().continued(words, log)
        assert (command.words, command.prompt, command.is_fresh) == (words, None, False)


def test_an_agent_that_refuses_starts_in_another_way() -> None:
    """A session that the agent does not know is replaced by a new one; an agent that takes no id gets none."""
    sessions, log = AgentSessions(), Log(known=AgentSession("gemini", OLD), is_first=False)
    words = ["gemini", "-p", "x"]
    ran = sessions.continued(words, log)
    assert ran.prompt == "go on"
    instead = sessions.replacement(words, ran, AttemptError('Error: Invalid session identifier "x".'), log)
    assert instead is not None
    assert instead.is_fresh
    refused = sessions.replacement(words, instead, AttemptError("error: unknown option '--session-id'"), log)
    assert refused is not None
    assert refused.words == words
    assert sessions.replacement(words, instead, AttemptError("overloaded"), log) is None


def test_files_that_differ_from_the_last_commit(tmp_path: Path) -> None:
    """Changed and new files are listed; outside of a work tree nothing is known."""
    assert changed_files(tmp_path) == ""
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert changed_files(tmp_path) == ""
    (tmp_path / "a.txt").write_text("one\n")
    subprocess.run(["git", "add", "a.txt"], cwd=tmp_path, check=True)
    for number in range(22):
        (tmp_path / f"new{number:02}").touch()
    found = changed_files(tmp_path)
    assert "a.txt | 1 +" in found
    assert " new00 (new)" in found
    assert "and 2 more new files" in found
