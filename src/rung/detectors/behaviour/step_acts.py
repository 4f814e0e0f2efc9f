"""Certain effects of a step: the paths it changes, deletes and reads, and the commands it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.detectors.loops import normalize
from rung.detectors.loops.observed_step import LOOKS_FAILED
from rung.detectors.loops.side_effects import Effect, effect_of, name_words, script_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.detectors.step import Step

FILE_ARGUMENTS: Final = ("file_path", "path", "file", "filename", "target_file", "notebook_path")
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(?P<rest>[^\n]*)\n.*?(?:^\s*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_LONG_QUOTE: Final = re.compile(r"'[^']*\s[^']*'|\"[^\"]*\s[^\"]*\"", re.DOTALL)
_SEPARATOR: Final = re.compile(r"&&|\|\||[;\n|&](?![>&\d])")
_REDIRECT: Final = re.compile(r"(?<![0-9&<>=-])>>?\s*(?P<path>[^\s;|&<>]+)")
_WRAPPER: Final = re.compile(
    r"^(?:(?:env|time|nohup|exec|command|then|do|else|sudo)\s+|timeout\s+\S+\s+|[A-Za-z_]\w*=\S*\s+)+"
)
_DELETING: Final = frozenset({"rm", "unlink", "rmdir", "shred"})
_READING: Final = frozenset({"cat", "less", "more", "head", "tail", "nl", "bat"})
_DELETE_WORDS: Final = frozenset({"delete", "remove", "rm", "unlink"})


def has_failed(step: Step) -> bool:
    """Return whether a step failed: reported by the tool, or recognised from its result."""
    return bool(step.error) or LOOKS_FAILED(normalize.clipped(step.result)[:200]) is not None


def commands_of(step: Step) -> list[str]:
    """Return the commands of a shell step, without the bodies of here-documents and long quotes."""
    script = _script(step)
    if script is None:
        return []
    bare = _LONG_QUOTE.sub('""', _HEREDOC.sub(r"\g<rest>", script))
    return [part.strip() for part in _SEPARATOR.split(bare) if part.strip()]


def _script(step: Step) -> str | None:
    return script_of(step.tool, normalize.parsed_arguments(step.args))


def unwrapped(command: str) -> str:
    """Return a command without `sudo`, `env`, `timeout 5` and variable assignments."""
    return _WRAPPER.sub("", command)


def acts_of(step: Step) -> Iterator[tuple[str, str]]:
    """Yield what a step does to which path: `change`, `delete` or `read`."""
    arguments = normalize.parsed_arguments(step.args)
    if _script(step) is not None:
        for command in commands_of(step):
            yield from _acts_of_command(command)
    elif isinstance(arguments, Mapping):
        yield from _acts_of_tool(step.tool, arguments)


def _acts_of_tool(tool: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    path = next((arguments[name] for name in FILE_ARGUMENTS if isinstance(arguments.get(name), str)), None)
    if path is None:
        return
    effect = effect_of(tool, arguments)
    if effect is Effect.CHANGE:
        yield ("delete" if _DELETE_WORDS & set(name_words(tool)) else "change"), path
    elif effect is Effect.READ:
        yield "read", path


def _acts_of_command(command: str) -> Iterator[tuple[str, str]]:
    for match in _REDIRECT.finditer(command):
        yield "change", match["path"].strip("'\"")
    program, *words = _REDIRECT.sub(" ", unwrapped(command)).split() or [""]
    program = program.rpartition("/")[2]
    names = [word.strip("'\"") for word in words if not word.startswith("-")]
    if program in _DELETING:
        yield from (("delete", name) for name in names)
    elif program == "mv" and len(names) > 1:
        yield from (("delete", name) for name in names[:-1])
        yield "change", names[-1]
    elif program == "cp" and len(names) > 1:
        yield "change", names[-1]
    elif program in ("tee", "truncate"):
        yield from (("change", name) for name in names)
    elif program == "sed" and any(word.startswith("-i") or word == "--in-place" for word in words):
        yield from (("change", name) for name in names[-1:])
    elif program in _READING:
        yield from (("read", name) for name in names)
