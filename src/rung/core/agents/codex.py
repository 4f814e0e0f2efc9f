"""Codex (`codex exec …`): it prints the id of its session, and `exec resume` continues it. Read from version 0.166.0."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.agents.agent_call import SESSION, UUID, AgentCall, Transcript, json_field
from rung.core.agents.options import arities, parse_words

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: Final = frozenset({"codex"})
_EXEC: Final = ("exec", "e")
_OPTIONS: Final = arities(
    none=(
        "--strict-config --oss --approve-for-me --dangerously-bypass-approvals-and-sandbox --yolo --full-auto "
        "--dangerously-bypass-hook-trust --worktree --skip-git-repo-check --ephemeral --ignore-user-config --ignore-rules "
        "--json --experimental-json --search --no-alt-screen"
    ),
    one=(
        "-c --config --enable --disable -m --model --local-provider -p --profile -s --sandbox -C --cd --add-dir "
        "--thread-source --cyber-access-program --output-schema --color -o --output-last-message -a --ask-for-approval"
    ),
    many="-i --image",
)
_COMMANDS: Final = ("resume", "fork", "review", "help")
_LOST: Final = re.compile(r"no rollout found for thread id|No recorded session found", re.IGNORECASE)
_HEADER: Final = re.compile(r"session id:\s*([0-9a-fA-F-]{36})\b")


def read_codex(words: Sequence[str]) -> AgentCall | None:
    """Return the call in a command line whose first word is the program; None if it is another one."""
    before = parse_words(words[1:], _OPTIONS, until=_EXEC)
    if before is None or len(before.positionals) != 1 or before.positionals[0] not in _EXEC:
        return None
    head = len(before.without()) + 2  # the program, its options and `exec`
    parsed = parse_words(words[head:], _OPTIONS, until=_COMMANDS)
    if parsed is None or parsed.has("--ephemeral", "--worktree") or before.has("--worktree"):
        return None
    session, options = "", parsed.without()
    if parsed.positionals[-1:] == ("resume",):
        last = parse_words(words[head + len(options) + 1 :], _OPTIONS)
        if last is None or not last.positionals or not UUID.fullmatch(last.positionals[0]):
            return None  # the newest session, or one by its name
        session, options = last.positionals[0], (*options, *last.without())
    elif len(parsed.positionals) > 1 or parsed.positionals[:1] in [(name,) for name in _COMMANDS]:
        return None
    return AgentCall(
        program="codex",
        start=tuple(words),
        resume=(*words[:head], *options, "resume", SESSION, "-"),
        session=session,
        id_patterns=(json_field("thread_id"), _HEADER),
        lost=_LOST,
        transcript=Transcript.CODEX,
    )
