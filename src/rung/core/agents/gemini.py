"""Gemini CLI (`gemini -p …`): its session id is given to it, and `--resume` continues it. Read from version 0.61.0."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.agents.agent_call import SESSION, UUID, AgentCall, json_field
from rung.core.agents.options import arities, parse_words, with_value

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: Final = frozenset({"gemini"})
_OPTIONS: Final = arities(
    none="-d --debug --skip-trust -s --sandbox -y --yolo --screen-reader --raw-output --accept-raw-output-risk",
    one="-m --model --approval-mode --session-id -o --output-format -r --resume",
    optional="-p --prompt -w --worktree",
    many="--policy --admin-policy --allowed-mcp-server-names --allowed-tools -e --extensions --include-directories",
)
_PROMPT: Final = ("-p", "--prompt")
_SESSION_OPTIONS: Final = ("--session-id", "-r", "--resume")
_UNSUPPORTED: Final = (
    "-w",
    "--worktree",
    "--session-file",
    "--acp",
    "--experimental-acp",
    "-i",
    "--prompt-interactive",
)
_LOST: Final = re.compile(r"Invalid session identifier|No previous sessions found")


def read_gemini(words: Sequence[str]) -> AgentCall | None:
    """Return the call in a command line whose first word is the program; None if it is another one."""
    program, *rest = words
    parsed = parse_words(rest, _OPTIONS)
    if parsed is None or not parsed.has(*_PROMPT) or parsed.has(*_UNSUPPORTED) or parsed.positionals:
        return None
    named = parsed.value("--session-id") or parsed.value("-r", "--resume")
    start = with_value(words, "--session-id", SESSION)
    if not parsed.has(*_SESSION_OPTIONS):
        start = (program, "--session-id", SESSION, *rest)
    return AgentCall(
        program="gemini",
        start=start,
        # The prompt is appended to standard input.
        resume=(program, "--resume", SESSION, *parsed.without(*_SESSION_OPTIONS, *_PROMPT), "--prompt="),
        session=named if UUID.fullmatch(named) else "",
        id_patterns=(json_field("session_id"),),
        lost=_LOST,
    )
