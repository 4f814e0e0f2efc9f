"""Recognise the agent of a command line: the ones that settings describe first, then those that Rung knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.agents import claude_code, codex, gemini, opencode
from rung.core.agents.claude_code import read_claude
from rung.core.agents.codex import read_codex
from rung.core.agents.gemini import read_gemini
from rung.core.agents.opencode import read_opencode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.agents.agent_call import AgentCall
    from rung.core.agents.own_agents import OwnAgent

_WRAPPERS: Final = frozenset({"env", "exec", "nice", "nohup", "setsid", "stdbuf", "time", "timeout", "ionice", "chrt"})
_READERS: Final[Mapping[str, Callable[[Sequence[str]], AgentCall | None]]] = {
    **dict.fromkeys(claude_code.PROGRAMS, read_claude),
    **dict.fromkeys(codex.PROGRAMS, read_codex),
    **dict.fromkeys(gemini.PROGRAMS, read_gemini),
    **dict.fromkeys(opencode.PROGRAMS, read_opencode),
}


def recognise(command: Sequence[str], own: Sequence[OwnAgent] = ()) -> AgentCall | None:
    """Return the call of a command line, also behind wrappers such as `timeout 600`; None if no agent is known."""
    at = _program_index(command)
    prefix, words = command[:at], command[at:]
    if not words:
        return None
    reader = _READERS.get(program_name(words[0]))
    readers = [agent.read for agent in own] + ([] if reader is None else [reader])
    call = next((found for read in readers if (found := read(words)) is not None), None)
    return None if call is None else call.after(prefix)


def program_name(word: str) -> str:
    """Return the name of a program without its path and the endings of Windows."""
    name = word.replace("\\", "/").rsplit("/", 1)[-1]
    for ending in (".exe", ".cmd"):
        name = name.removesuffix(ending)
    return name


def _program_index(command: Sequence[str]) -> int:
    """Return the position of the program: after wrappers, their options, assignments and numbers."""
    index = 0
    while index < len(command) and program_name(command[index]) in _WRAPPERS:
        index += 1
        while index < len(command) and _belongs_to_wrapper(command[index]):
            index += 1
    return index


def _belongs_to_wrapper(word: str) -> bool:
    return word.startswith("-") or "=" in word.partition("/")[0] or word[:1].isdigit()
