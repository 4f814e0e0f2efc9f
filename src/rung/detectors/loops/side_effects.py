"""What a call may do to the world: whether the same call after it could have another outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class Effect(StrEnum):
    """What a call may change."""

    NONE = "none"  # a thought, a note: neither a call nor an outcome
    READ = "read"
    WAIT = "wait"  # looks again after a while, on purpose
    MOVE = "move"  # another page, another window: the next look is at something else
    TALK = "talk"  # a person may have said something new
    CHANGE = "change"  # files, records, a system
    OTHER = "other"  # a tool whose name says nothing


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NONE: Final = _set("think thinking thought reason reflect scratchpad")
_WAIT: Final = _set("wait sleep poll monitor watch await")
_READ: Final = _set(
    "read get list ls cat view show search find grep rg glob fetch query look lookup describe inspect check status "
    "calculate count diff log head tail tree info details stat validate verify explain retrieve test lint extract"
)
_MOVE: Final = _set(
    "click scroll goto navigate visit open back forward page browse tab press hover next previous prev up down "
    "refresh reload zoom go clicked scrolled visited opened pressed navigated hovered screenshot snapshot typed type "
    "input browser refreshed selected select"
)
_TALK: Final = _set("reply respond message ask say user communicate human")
_CHANGE: Final = _set(
    "write edit create update delete insert replace patch apply set add remove move rename copy install uninstall "
    "deploy commit push send book cancel submit save upload post put exec execute run start stop restart kill modify "
    "change fix build compile make mkdir rm mv cp touch transfer pay order buy purchase assign merge python code "
    "interpreter notebook register enable disable reset undo edited wrote"
)
_SHELLS: Final = _set("bash shell terminal sh zsh powershell cmd command console")
_NAME: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ACTIONS: Final = ("action", "command", "subcommand", "operation", "method", "cmd", "op", "mode")
_SCRIPTS: Final = ("command", "cmd", "script", "code", "input")
_TEXT: Final = 2_000


def parts(name: str) -> list[str]:
    """The words of a name, small: `getUserDetails` and `get_user_details` are the same three."""
    return [word.lower() for word in _NAME.findall(name)]


def is_shell(tool: str) -> bool:
    """Does this tool run commands of a shell?"""
    return not _SHELLS.isdisjoint(parts(tool)) or tool.lower() in {"execute_bash", "run_shell_command"}


_CODE: Final = _set("python code interpreter notebook ipython jupyter cell javascript js sql")


def is_code(tool: str) -> bool:
    """Is this tool given a program rather than a request?"""
    return is_shell(tool) or not _CODE.isdisjoint(parts(tool))


def only_text(args: Any) -> str | None:
    """The text that a call is given, where that is all it is given: bare, or under whatever name."""
    if isinstance(args, Mapping) and len(args) == 1:
        args = next(iter(args.values()))
    return args if isinstance(args, str) else None


def script_of(tool: str, args: Any) -> str | None:
    """The command a shell is given, or None where the tool is none."""
    if not is_shell(tool):
        return None
    told = only_text(args)
    if told is not None:
        return None if is_prose(told) else told[:_TEXT]
    if isinstance(args, Mapping):
        for key in _SCRIPTS:
            value = args.get(key)
            if isinstance(value, str):
                return value[:_TEXT]
            if isinstance(value, list | tuple):
                return " ".join(str(word) for word in value)[:_TEXT]
    return None


_FILLERS: Final = re.compile(r"\b(?:the|a|an|please|to|of|for|and|this|that|it|with|using|now)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"\s*[A-Z][a-z]+ [a-z'`\"]")
_FEWEST: Final = 2


def is_prose(text: str) -> bool:
    """A request in words rather than a command: an agent may be what stands behind a terminal."""
    start = text[:200]
    return _SENTENCE.match(start) is not None and len(_FILLERS.findall(start)) >= _FEWEST


def action_of(tool: str, args: Any) -> str:
    """The tool, with the action of one that does several things: `browser_use:click_element`, `bash:pip`."""
    if isinstance(args, Mapping):
        for key in _ACTIONS:
            value = args.get(key)
            if isinstance(value, str) and value.isidentifier():
                return f"{tool}:{value}"
    script = script_of(tool, args)
    if script:
        programs = [_program(command)[0] for command in _commands(script)]
        return f"{tool}:{next((name for name in programs if name != 'cd'), 'cd')}"
    return tool


def effect_of(tool: str, args: Any) -> Effect:
    """What this call may change, by its name, its action, and the words of what it is told."""
    named = parts(tool)
    if named and named[0] in _NONE:
        return Effect.NONE
    script = script_of(tool, args)
    if script is not None and not (script.isidentifier() and isinstance(args, Mapping) and len(args) > 1):
        return _of_script(script)
    action = action_of(tool, args)
    if ":" in action:
        found = _of_words(parts(action.partition(":")[2]))
        if found is not Effect.OTHER:
            return found
    found = _of_words(named)
    text = only_text(args) if found is Effect.OTHER else None
    if text is not None:
        told = [word for word in parts(text[:60])[:3] if word != "i"]
        return Effect.MOVE if told and told[0] in _MOVE else Effect.OTHER
    return found


def _of_words(words: list[str]) -> Effect:
    """The first word that says anything: `get_order` reads, `order_get` is taken for an order."""
    for word in words:
        for effect, verbs in _BY_VERB:
            if word in verbs:
                return effect
    return Effect.OTHER


_BY_VERB: Final = (
    (Effect.WAIT, _WAIT),
    (Effect.READ, _READ),
    (Effect.TALK, _TALK),
    (Effect.CHANGE, _CHANGE),
    (Effect.MOVE, _MOVE),
)

_HERE: Final = _set("extract snapshot screenshot state ctrl page viewport visible current")
_PLACE: Final = re.compile(r"://|\b(?:search|address|url) (?:bar|box|field)\b", re.IGNORECASE)


def from_anywhere(effect: Effect, action: str, form: str, *, given: bool) -> bool:
    """Does the call name all that it looks at, so that it comes to the same wherever the agent is?"""
    if not given:
        return False
    if effect is Effect.READ:
        return _HERE.isdisjoint(parts(action))
    return effect in (Effect.MOVE, Effect.OTHER) and _PLACE.search(form) is not None


# -- shells -------------------------------------------------------------------------------------------

_LOOKS: Final = _set(
    "ls cat head tail less more grep egrep fgrep rg ag find fd tree wc file stat du df pwd whoami which type echo printf "
    "env printenv ps top history date uname nl sort uniq cut awk sed diff cmp jq xxd od md5sum sha256sum sha1sum test "
    "true false cd export set locate readlink realpath basename dirname id hostname lsof netstat ss ping dig nslookup "
    "host free uptime tr column strings ldd nm objdump search_dir search_file find_file exit timeout xargs pytest tox"
)
_STEERS: Final = _set("open goto scroll_up scroll_down")
_LOOKING: Final[Mapping[str, frozenset[str]]] = {
    "git": _set("status log diff show branch blame ls-files grep rev-parse describe remote reflog shortlog"),
    "pip": _set("list show freeze check index search"),
    "pip3": _set("list show freeze check index"),
    "npm": _set("ls list view test outdated audit"),
    "cargo": _set("test check clippy tree"),
    "go": _set("test vet list version"),
    "docker": _set("ps logs images inspect"),
    "kubectl": _set("get describe logs"),
    "systemctl": _set("status is-active"),
    "apt": _set("list search show"),
    "curl": frozenset(),
    "wget": frozenset(),
    "make": _set("test check lint"),
}
_JOINTS: Final = re.compile(r"&&|\|\||[;\n|]")
_WRITES: Final = re.compile(
    r"(?<![0-9&<>=-])>>?(?!\s*(?:/dev/null|&))|<<|\btee\b|\bsed\b[^|;]*\s-i|\bfind\b[^|;]*-(?:delete|exec)"
    r"|\bcurl\b[^|;]*\s(?:-X\s*P|-X\s*D|-d\b|--data|--request)"
)
_WAITS: Final = re.compile(r"\bsleep\s+[\d.$]|\bwait(?:-for|_for)?\b|\btail\s+-f\b|--wait\b")
_SKIPPED: Final = _set("sudo env time nohup exec command then do else")


def _commands(script: str) -> list[str]:
    return [part.strip() for part in _JOINTS.split(script) if part.strip()] or [""]


def _program(command: str) -> tuple[str, str]:
    """The program of a command and the word after it, without `sudo`, settings of variables and `timeout 5`."""
    words = command.split()
    while words and (words[0] in _SKIPPED or ("=" in words[0] and words[0].split("=")[0].isidentifier())):
        words = words[1:]
    if len(words) > 2 and words[0] == "timeout":  # noqa: PLR2004  # the program, its time, and what it runs
        words = words[2:]
    return (words[0] if words else "", words[1] if len(words) > 1 else "")


def _of_script(script: str) -> Effect:
    if _WRITES.search(script):
        return Effect.CHANGE
    waits = _WAITS.search(script) is not None
    steers = False
    for command in _commands(script):
        program, then = _program(command)
        program = program.rpartition("/")[2]
        if program in _STEERS:
            steers = True
        elif program == "sleep" or program in _LOOKS or (program == "python" and then == "-m" and "pytest" in command):
            continue
        elif program in _LOOKING:
            allowed = _LOOKING[program]
            if allowed and then not in allowed:
                return Effect.WAIT if waits else Effect.CHANGE
        elif program:
            return Effect.WAIT if waits else Effect.CHANGE
    if waits:
        return Effect.WAIT
    return Effect.MOVE if steers else Effect.READ
