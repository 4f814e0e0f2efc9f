"""Side effects of a call, guessed from its tool name and arguments: could a repeat have another outcome?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class Effect(StrEnum):
    """Side effect of a call."""

    NONE = "none"  # a thought or a note, not a real call
    READ = "read"
    WAIT = "wait"  # polls or sleeps on purpose
    MOVE = "move"  # another page or window: the next read has another target
    TALK = "talk"  # a person may have given new information
    CHANGE = "change"  # files, records, a system
    OTHER = "other"  # the tool's name does not show it


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_THOUGHT_VERBS: Final = _words("think thinking thought reason reflect scratchpad")
_WAIT_VERBS: Final = _words("wait sleep poll monitor watch await")
_READ_VERBS: Final = _words(
    "read get list ls cat view show search find grep rg glob fetch query look lookup describe inspect check status "
    "calculate count diff log head tail tree info details stat validate verify explain retrieve test lint extract"
)
_MOVE_VERBS: Final = _words(
    "click scroll goto navigate visit open back forward page browse tab press hover next previous prev up down "
    "refresh reload zoom go clicked scrolled visited opened pressed navigated hovered screenshot snapshot typed type "
    "input browser refreshed selected select"
)
_TALK_VERBS: Final = _words("reply respond message ask say user communicate human")
_CHANGE_VERBS: Final = _words(
    "write edit create update delete insert replace patch apply set add remove move rename copy install uninstall "
    "deploy commit push send book cancel submit save upload post put exec execute run start stop restart kill modify "
    "change fix build compile make mkdir rm mv cp touch transfer pay order buy purchase assign merge python code "
    "interpreter notebook register enable disable reset undo edited wrote"
)
_SHELL_NAMES: Final = _words("bash shell terminal sh zsh powershell cmd command console")
_NAME_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ACTION_ARGUMENTS: Final = ("action", "command", "subcommand", "operation", "method", "cmd", "op", "mode")
_SCRIPT_ARGUMENTS: Final = ("command", "cmd", "script", "code", "input")
_MAX_SCRIPT_CHARS: Final = 2_000


def name_words(name: str) -> list[str]:
    """Split a name into lower-case words: `getUserDetails` and `get_user_details` give the same three."""
    return [word.lower() for word in _NAME_WORD.findall(name)]


def is_shell(tool: str) -> bool:
    """Return whether the tool runs shell commands."""
    return not _SHELL_NAMES.isdisjoint(name_words(tool)) or tool.lower() in {"execute_bash", "run_shell_command"}


_CODE_TOOLS: Final = _words("python code interpreter notebook ipython jupyter cell javascript js sql")


def is_code(tool: str) -> bool:
    """Return whether the tool executes code."""
    return is_shell(tool) or not _CODE_TOOLS.isdisjoint(name_words(tool))


def sole_text(args: Any) -> str | None:
    """Return the text of a call whose only argument is a text; else None."""
    if isinstance(args, Mapping) and len(args) == 1:
        args = next(iter(args.values()))
    return args if isinstance(args, str) else None


def script_of(tool: str, args: Any) -> str | None:
    """Return the command for a shell tool; None for other tools."""
    if not is_shell(tool):
        return None
    text = sole_text(args)
    if text is not None:
        return None if is_prose(text) else text[:_MAX_SCRIPT_CHARS]
    if isinstance(args, Mapping):
        for key in _SCRIPT_ARGUMENTS:
            value = args.get(key)
            if isinstance(value, str):
                return value[:_MAX_SCRIPT_CHARS]
            if isinstance(value, list | tuple):
                return " ".join(str(word) for word in value)[:_MAX_SCRIPT_CHARS]
    return None


_FILLERS: Final = re.compile(r"\b(?:the|a|an|please|to|of|for|and|this|that|it|with|using|now)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"\s*[A-Z][a-z]+ [a-z'`\"]")
_MIN_FILLERS: Final = 2


def is_prose(text: str) -> bool:
    """Return whether a text is a request in prose, not a command: the “shell” may be another agent."""
    start = text[:200]
    return _SENTENCE.match(start) is not None and len(_FILLERS.findall(start)) >= _MIN_FILLERS


def action_of(tool: str, args: Any) -> str:
    """Return the tool, with the action of a multi-purpose tool: `browser_use:click_element`, `bash:pip`."""
    if isinstance(args, Mapping):
        for key in _ACTION_ARGUMENTS:
            value = args.get(key)
            if isinstance(value, str) and value.isidentifier():
                return f"{tool}:{value}"
    script = script_of(tool, args)
    if script:
        programs = [_program(command)[0] for command in _commands(script)]
        return f"{tool}:{next((name for name in programs if name != 'cd'), 'cd')}"
    return tool


def effect_of(tool: str, args: Any) -> Effect:
    """Return the side effect of a call, by its tool name, its action and its text."""
    tool_words = name_words(tool)
    if tool_words and tool_words[0] in _THOUGHT_VERBS:
        return Effect.NONE
    script = script_of(tool, args)
    if script is not None and not (script.isidentifier() and isinstance(args, Mapping) and len(args) > 1):
        return _effect_of_script(script)
    action = action_of(tool, args)
    if ":" in action:
        effect = _effect_of_words(name_words(action.partition(":")[2]))
        if effect is not Effect.OTHER:
            return effect
    effect = _effect_of_words(tool_words)
    text = sole_text(args) if effect is Effect.OTHER else None
    if text is not None:
        words = [word for word in name_words(text[:60])[:3] if word != "i"]
        return Effect.MOVE if words and words[0] in _MOVE_VERBS else Effect.OTHER
    return effect


def _effect_of_words(words: list[str]) -> Effect:
    """Return the effect of the first known verb: `get_order` reads, `order_get` counts as an order."""
    for word in words:
        for effect, verbs in _BY_VERB:
            if word in verbs:
                return effect
    return Effect.OTHER


_BY_VERB: Final = (
    (Effect.WAIT, _WAIT_VERBS),
    (Effect.READ, _READ_VERBS),
    (Effect.TALK, _TALK_VERBS),
    (Effect.CHANGE, _CHANGE_VERBS),
    (Effect.MOVE, _MOVE_VERBS),
)

_LOCATION_WORDS: Final = _words("extract snapshot screenshot state ctrl page viewport visible current")
_EXPLICIT_LOCATION: Final = re.compile(r"://|\b(?:search|address|url) (?:bar|box|field)\b", re.IGNORECASE)


def is_location_independent(effect: Effect, action: str, form: str, *, has_arguments: bool) -> bool:
    """Return whether the call names its target completely, so that its result does not depend on the current location."""
    if not has_arguments:
        return False
    if effect is Effect.READ:
        return _LOCATION_WORDS.isdisjoint(name_words(action))
    return effect in (Effect.MOVE, Effect.OTHER) and _EXPLICIT_LOCATION.search(form) is not None


# -- shells -------------------------------------------------------------------------------------------

_READ_PROGRAMS: Final = _words(
    "ls cat head tail less more grep egrep fgrep rg ag find fd tree wc file stat du df pwd whoami which type echo printf "
    "env printenv ps top history date uname nl sort uniq cut awk sed diff cmp jq xxd od md5sum sha256sum sha1sum test "
    "true false cd export set locate readlink realpath basename dirname id hostname lsof netstat ss ping dig nslookup "
    "host free uptime tr column strings ldd nm objdump search_dir search_file find_file exit timeout xargs pytest tox"
)
_MOVE_PROGRAMS: Final = _words("open goto scroll_up scroll_down")
_READ_SUBCOMMANDS: Final[Mapping[str, frozenset[str]]] = {
    "git": _words("status log diff show branch blame ls-files grep rev-parse describe remote reflog shortlog"),
    "pip": _words("list show freeze check index search"),
    "pip3": _words("list show freeze check index"),
    "npm": _words("ls list view test outdated audit"),
    "cargo": _words("test check clippy tree"),
    "go": _words("test vet list version"),
    "docker": _words("ps logs images inspect"),
    "kubectl": _words("get describe logs"),
    "systemctl": _words("status is-active"),
    "apt": _words("list search show"),
    "curl": frozenset(),
    "wget": frozenset(),
    "make": _words("test check lint"),
}
_COMMAND_SEPARATORS: Final = re.compile(r"&&|\|\||[;\n|]")
_WRITE_PATTERN: Final = re.compile(
    r"(?<![0-9&<>=-])>>?(?!\s*(?:/dev/null|&))|<<|\btee\b|\bsed\b[^|;]*\s-i|\bfind\b[^|;]*-(?:delete|exec)"
    r"|\bcurl\b[^|;]*\s(?:-X\s*P|-X\s*D|-d\b|--data|--request)"
)
_WAIT_PATTERN: Final = re.compile(r"\bsleep\s+[\d.$]|\bwait(?:-for|_for)?\b|\btail\s+-f\b|--wait\b")
_WRAPPER_PROGRAMS: Final = _words("sudo env time nohup exec command then do else")


def _commands(script: str) -> list[str]:
    return [part.strip() for part in _COMMAND_SEPARATORS.split(script) if part.strip()] or [""]


def _program(command: str) -> tuple[str, str]:
    """Return the program of a command and the next word, without `sudo`, variable assignments and `timeout 5`."""
    words = command.split()
    while words and (words[0] in _WRAPPER_PROGRAMS or ("=" in words[0] and words[0].split("=")[0].isidentifier())):
        words = words[1:]
    if len(words) > 2 and words[0] == "timeout":  # noqa: PLR2004  # `timeout`, its duration, and the command
        words = words[2:]
    return (words[0] if words else "", words[1] if len(words) > 1 else "")


def _effect_of_script(script: str) -> Effect:
    if _WRITE_PATTERN.search(script):
        return Effect.CHANGE
    waits = _WAIT_PATTERN.search(script) is not None
    moves = False
    for command in _commands(script):
        program, argument = _program(command)
        program = program.rpartition("/")[2]
        if program in _MOVE_PROGRAMS:
            moves = True
        elif (
            program == "sleep"
            or program in _READ_PROGRAMS
            or (program == "python" and argument == "-m" and "pytest" in command)
        ):
            continue
        elif program in _READ_SUBCOMMANDS:
            allowed = _READ_SUBCOMMANDS[program]
            if allowed and argument not in allowed:
                return Effect.WAIT if waits else Effect.CHANGE
        elif program:
            return Effect.WAIT if waits else Effect.CHANGE
    if waits:
        return Effect.WAIT
    return Effect.MOVE if moves else Effect.READ
