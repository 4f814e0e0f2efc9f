"""Session files of Claude Code and Codex: found by their id, and repaired as a copy if they are damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rung.core.agents.agent_call import SESSION_ID, Transcript
from rung.core.agents.claude_transcript import repair_claude
from rung.core.agents.codex_transcript import repair_codex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.agents.transcript import RepairedTranscript

MAX_REPAIRED_BYTES: Final = 256 * 1024 * 1024  # a larger file is continued as it is
_REPAIRS: Final[Mapping[Transcript, Callable[[bytes, str], RepairedTranscript | None]]] = {
    Transcript.CLAUDE_CODE: repair_claude,
    Transcript.CODEX: repair_codex,
}


def continuable_session(transcript: Transcript, session: str) -> str:
    """Return the id of a session that can be continued: this one, or that of a repaired copy; empty if there is none.

    The agent's own file is never changed.
    """
    if transcript is Transcript.NONE:
        return session
    path = find_session_file(transcript, session)
    if path is None:
        return ""
    try:
        if path.stat().st_size > MAX_REPAIRED_BYTES:
            return session
        copy = str(uuid4())
        repaired = _REPAIRS[transcript](path.read_bytes(), copy)
        if repaired is None:
            return ""
        if not repaired.damage:
            return session
        _write_new(path.with_name(path.name.replace(session, copy)), repaired.data)
    except OSError:
        return ""  # the agent could not read it either
    return copy


def find_session_file(transcript: Transcript, session: str) -> Path | None:
    """Return the file of a session; None if there is none."""
    if SESSION_ID.fullmatch(session) is None:
        return None
    if transcript is Transcript.CLAUDE_CODE:
        folder, pattern = _folder("CLAUDE_CONFIG_DIR", ".claude") / "projects", f"*/{session}.jsonl"
    else:
        folder, pattern = _folder("CODEX_HOME", ".codex") / "sessions", f"*/*/*/rollout-*-{session}.jsonl"
    return next(iter(sorted(folder.glob(pattern))), None)


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name)


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that did not exist, and that nobody else may read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)
