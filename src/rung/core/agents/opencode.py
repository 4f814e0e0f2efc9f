"""opencode (`opencode run …`): with `--format json` it prints the id of its session, and `--session` continues it.

Read from version 1.18.33. In its default format the id is not printed, and the session cannot be continued.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.agents.agent_call import SESSION, SESSION_ID, AgentCall, json_field
from rung.core.agents.options import arities, parse_words

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: Final = frozenset({"opencode"})
_OPTIONS: Final = arities(
    none="--print-logs --pure -c --continue --fork --share --thinking --auto",
    one=(
        "--log-level --command -s --session -m --model --agent --format --title --attach -p --password -u --username --dir "
        "--port --variant"
    ),
    many="-f --file",
)
_SESSION_OPTIONS: Final = ("-s", "--session", "-c", "--continue", "--fork", "--title")
_LOST: Final = re.compile(r"Session not found", re.IGNORECASE)


def read_opencode(words: Sequence[str]) -> AgentCall | None:
    """Return the call in a command line whose first word is the program; None if it is another one."""
    before = parse_words(words[1:], _OPTIONS, until=("run",))
    if before is None or before.positionals != ("run",):
        return None
    head = len(before.without()) + 2  # the program, its options and `run`
    parsed = parse_words(words[head:], _OPTIONS)
    if parsed is None or parsed.has("--command", "-i", "--interactive"):
        return None
    named = "" if parsed.has("--fork") else parsed.value("-s", "--session")
    return AgentCall(
        program="opencode",
        start=tuple(words),
        resume=(*words[:head], "--session", SESSION, *parsed.without(*_SESSION_OPTIONS)),
        session=named if SESSION_ID.fullmatch(named) else "",
        id_patterns=(json_field("sessionID"),),
        lost=_LOST,
    )
