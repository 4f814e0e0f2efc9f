"""Agent call: a command line of a known agent without a terminal, and the one that continues its session."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

SESSION: Final = "\0session\0"  # stands for the id; no argument of a command can contain it
# An id that comes from output is put into a command line: it must not look like an option.
SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Transcript(StrEnum):
    """Format of the files in which an agent keeps its sessions; NONE: they are not read."""

    NONE = "none"
    CLAUDE_CODE = "claude_code"
    CODEX = "codex"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """Commands of one agent. `start` and `resume` may contain SESSION; `resume` gets its prompt on standard input.

    A `start` without SESSION leaves the id to the agent; `id_patterns` then find it in a line of its output.
    """

    program: str  # the agent's name, as shown to people
    start: tuple[str, ...]
    resume: tuple[str, ...]
    session: str = ""  # the id that the command itself names
    id_patterns: tuple[re.Pattern[str], ...] = ()
    lost: re.Pattern[str] | None = None  # its error about a session that it does not know
    transcript: Transcript = Transcript.NONE
    is_json_input: bool = False  # its standard input is one JSON message for each line

    @property
    def takes_session(self) -> bool:
        """Whether the agent is given the id of a new session."""
        return any(SESSION in word for word in self.start)

    @property
    def names_session(self) -> bool:
        """Whether the id is known before the agent starts."""
        return bool(self.session) or self.takes_session

    def started(self, session: str) -> tuple[str, ...]:
        """Return the command that starts a session with this id."""
        return tuple(word.replace(SESSION, session) for word in self.start)

    def resumed(self, session: str) -> tuple[str, ...]:
        """Return the command that continues the session with this id."""
        return tuple(word.replace(SESSION, session) for word in self.resume)

    def find_id(self, line: str) -> str:
        """Return the session id in a line of output; empty if there is none."""
        for pattern in self.id_patterns:
            found = pattern.search(line)
            if found is not None and SESSION_ID.fullmatch(found[1]):
                return found[1]
        return ""

    def after(self, prefix: Sequence[str]) -> AgentCall:
        """Return the call behind a prefix such as `timeout 600`."""
        from dataclasses import replace

        return replace(self, start=(*prefix, *self.start), resume=(*prefix, *self.resume))


def json_field(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a text field of this name in a line of JSON."""
    return re.compile(rf'"{re.escape(name)}"\s*:\s*"([^"\\]+)"')
