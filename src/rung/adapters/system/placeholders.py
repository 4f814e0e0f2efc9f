"""Placeholders in command lines, such as `{recovery}`: filled in as arguments, never as part of a script.

    word                               becomes
    {recovery}, --prompt={recovery}    the same word with the text in it: one argument, which no shell reads
    sh -c 'agent "{recovery}"'         sh -c 'agent "${RUNG_RECOVERY}"', with the text in the environment
    python -c 'ask("{recovery}")'      refused: the text would be code; the script can read RUNG_RECOVERY instead
    ssh host agent {recovery}          refused: a shell on the other side would read the text

A command that names RUNG_RECOVERY gets the variable, too.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHELL: Final = re.compile(r"(?:ba|da|a|z|k|mk)?sh")
_WRAPPERS: Final = frozenset({"env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout"})
# Programs that hand their arguments to a shell, and interpreters of code in an argument.
_SHELL_CALLERS: Final = frozenset({"eval", "mosh", "parallel", "script", "ssh", "su", "watch"})
_INTERPRETER: Final = re.compile(
    r"(?:python|pypy|perl|ruby|php|node|deno|bun|lua|pwsh|powershell|osascript|fish|t?csh)[\d.]*"
)
_SHELL_SCRIPT_OPTION: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_CODE_OPTION: Final = re.compile(r"-[A-Za-z]*[cepr]|--(?:eval|print)|-command", re.IGNORECASE)


def uses_placeholder(command: Sequence[str], placeholder: str) -> bool:
    """Return whether a command takes this text as an argument or from the environment."""
    return any(placeholder in word or _variable(placeholder) in word for word in command)


def fill_placeholders(command: Sequence[str], values: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command with the values in it, and the environment variables that it needs.

    Raises ConfigError where a value would be read as code.
    """
    pattern = re.compile("|".join(map(re.escape, values)))
    texts = {name: _argument_text(text) for name, text in values.items()}
    scripts = _code_positions(command, _SHELL, _SHELL_SCRIPT_OPTION)
    code = _code_positions(command, _INTERPRETER, _CODE_OPTION)
    words: list[str] = []
    for position, word in enumerate(command):
        found = pattern.search(word)
        if found is None:
            words.append(word)
        elif position in scripts:
            words.append(_with_variables(word, pattern))
        elif position in code or _goes_to_a_shell(command, position):
            example = f"sh -c 'my-agent \"${_variable(found[0])}\"'"
            raise ConfigError("command", word, f"one in which no program reads {found[0]} as code, such as {example}")
        else:
            words.append(pattern.sub(lambda match: texts[match[0]], word))
    named = " ".join((*command, *(words[position] for position in scripts)))
    return words, {_variable(name): text for name, text in texts.items() if _variable(name) in named}


def _variable(placeholder: str) -> str:
    return f"RUNG_{placeholder.strip('{}').upper()}"


def _argument_text(text: str) -> str:
    """Return a text that the operating system takes as an argument: without NUL, encodable."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _code_positions(command: Sequence[str], program: re.Pattern[str], option: re.Pattern[str]) -> set[int]:
    """Return the positions of code in a command: the first word after `sh -c` that is not an option."""
    found: set[int] = set()
    for start, word in enumerate(command):
        if program.fullmatch(PurePath(word).name):
            has_option = False
            for position in range(start + 1, len(command)):
                has_option = has_option or option.fullmatch(command[position]) is not None
                if command[position][:1] not in ("-", "+") and command[position - 1] not in ("-o", "+o", "-O", "+O"):
                    found |= {position} if has_option else set()
                    break
    return found


def _goes_to_a_shell(command: Sequence[str], position: int) -> bool:
    """Return whether the program of the command hands this word to a shell."""
    program = next((n for n, word in enumerate(command) if not _is_wrapper(word)), 0)
    return PurePath(command[program]).name in _SHELL_CALLERS and position > program


def _is_wrapper(word: str) -> bool:
    return PurePath(word).name in _WRAPPERS or word.startswith("-") or "=" in word or word[:1].isdigit()


def _with_variables(script: str, pattern: re.Pattern[str]) -> str:
    """Return a shell script with variables in place of the placeholders, quoted as their surroundings need it."""
    parts: list[str] = []
    quote, at = "", 0
    for match in pattern.finditer(script):
        before = script[at : match.start()]
        quote = _quote_after(before, quote)
        outside = {"'": "'\"", "": '"', '"': ""}[quote]
        parts += (before, outside, "${", _variable(match[0]), "}", outside[::-1])
        at = match.end()
    return "".join((*parts, script[at:]))


def _quote_after(script: str, quote: str) -> str:
    """Return the quote that is open after this part of a shell script; empty if none is."""
    for mark in re.findall(r"\\.|[\"']", script, re.DOTALL):
        if quote == "'":
            quote = "" if mark.endswith("'") else quote  # a backslash is a character like any other there
        elif mark == quote:
            quote = ""
        elif not quote and len(mark) == 1:
            quote = mark
    return quote
