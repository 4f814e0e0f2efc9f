"""Claude Code (`claude -p …`): its session id is given to it, and `--resume` continues it. Read from version 2.1.325."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.agents.agent_call import SESSION, UUID, AgentCall, Transcript, json_field
from rung.core.agents.options import arities, parse_words, with_value

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: Final = frozenset({"claude"})
_OPTIONS: Final = arities(
    none=(
        "-p --print -c --continue --fork-session --verbose --allow-dangerously-skip-permissions --ax-screen-reader --bare "
        "--brief --chrome --dangerously-skip-permissions --disable-slash-commands --exclude-dynamic-system-prompt-sections "
        "--forward-subagent-text --ide --include-hook-events --include-partial-messages --no-chrome "
        "--no-session-persistence --replay-user-messages --restricted --safe-mode --strict-mcp-config --bg --background "
        "--mcp-debug"
    ),
    one=(
        "--agent --agents --append-system-prompt --append-system-prompt-file --autocompact --debug-file --effort "
        "--environment --fallback-model --input-format --json-schema --max-budget-usd --max-turns --model -n --name "
        "--output-format --permission-mode --permission-prompts --permission-prompt-tool --plugin-dir --plugin-url "
        "--session-id --setting-sources --settings --system-prompt --system-prompt-file --system-prompt-snapshot "
        "--max-thinking-tokens"
    ),
    optional="-d --debug -r --resume -w --worktree --from-pr --prompt-suggestions --cloud --teleport",
    many=(
        "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools --file --mcp-config --tools"
    ),
)
_SESSION_OPTIONS: Final = ("--session-id", "-r", "--resume", "-c", "--continue", "--fork-session")
# Sessions that are not kept, that lie in another directory or on another machine, or that run in the background.
_UNSUPPORTED: Final = (
    "--no-session-persistence", "-w", "--worktree", "--cloud", "--teleport", "--from-pr", "--bg", "--background",
)  # fmt: skip
_LOST: Final = re.compile(r"No conversation found with session ID|not a UUID and does not match any session")


def read_claude(words: Sequence[str]) -> AgentCall | None:
    """Return the call in a command line whose first word is the program; None if it is another one."""
    program, *rest = words
    parsed = parse_words(rest, _OPTIONS)
    if parsed is None or not parsed.has("-p", "--print") or parsed.has(*_UNSUPPORTED) or len(parsed.positionals) > 1:
        return None
    forks = parsed.has("--fork-session") or parsed.has("-c", "--continue")
    resumed = parsed.value("-r", "--resume")
    named = parsed.value("--session-id") or ("" if forks else resumed)
    start = with_value(words, "--session-id", SESSION)
    if not parsed.has(*_SESSION_OPTIONS):
        start = (program, "--session-id", SESSION, *rest)
    return AgentCall(
        program="claude",
        start=start,
        resume=(program, "--resume", SESSION, *parsed.without(*_SESSION_OPTIONS)),
        session=named if UUID.fullmatch(named) else "",
        id_patterns=(json_field("session_id"),),
        lost=_LOST,
        transcript=Transcript.CLAUDE_CODE,
        is_json_input=parsed.value("--input-format") == "stream-json",
    )
