"""Command lines that a user gives: split into words, and their program found before anything runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_PROGRAM: Final = "rung"
# Unquoted, only a shell gives them a meaning; `true && false` would run `true` with two arguments and pass.
_SHELL_OPERATORS: Final = frozenset({"&&", "||", "|", "&", ">", ">>", "<", "2>&1", "2>"})
_SHELL_BUILTINS: Final = frozenset({"cd", "export", "source", "set", "ulimit", "umask", "alias", "exec", "eval"})


def split_command(key: str, text: str) -> list[str]:
    """Return the words of a command line, which no shell reads.

    Raises ConfigError for an empty one, one with an open quote, and one with an operator of a shell that is not quoted.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(key, text, f"a command ({str(error).lower()})") from None
    if not words:
        raise ConfigError(key, text, "a command")
    operator = _shell_operator(text)
    if operator:
        with_shell = f"sh -c {shlex.quote(text)}"
        raise ConfigError(key, text, f"a command without {operator}, since no shell reads it; or write: {with_shell}")
    return words


def _shell_operator(text: str) -> str:
    """Return the first operator of a shell that stands unquoted between spaces; empty if there is none."""
    lexer = shlex.shlex(text, posix=False)  # keeps the quotes
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return next((word for word in lexer if word in _SHELL_OPERATORS), "")
    except ValueError:  # quotes inside words are read otherwise here
        return ""


def with_own_rung(command: Sequence[str]) -> list[str]:
    """Return a command in which the program `rung` is this installation, also where its environment is not activated.

    Nothing is imported from the directory that the command runs in.
    """
    words = list(command)
    return [sys.executable, "-P", "-m", OWN_PROGRAM, *words[1:]] if words[:1] == [OWN_PROGRAM] else words


def require_program(key: str, command: str | Sequence[str], folder: str | Path | None = None) -> list[str]:
    """Return the words of a command whose program exists. `folder` is the directory it will run in.

    Raises ConfigError otherwise: a program that cannot be started is a mistake of the caller, not a failure to recover from.
    A program that is a placeholder is known only when it runs.
    """
    words = split_command(key, command) if isinstance(command, str) else list(command)
    program = words[0] if words else ""
    if "{" in program:
        return words
    if not program or not _is_runnable(program, folder):
        raise ConfigError(key, program, f"a program that can be run ({_why_not(program, folder)})")
    return words


def _is_path(program: str) -> bool:
    return os.sep in program or (os.altsep is not None and os.altsep in program)


def _is_runnable(program: str, folder: str | Path | None) -> bool:
    return shutil.which(str(Path(folder or ".").resolve() / program) if _is_path(program) else program) is not None


def _why_not(program: str, folder: str | Path | None) -> str:
    first, *others = program.split() or [""]
    if first == "--":
        return "a value is missing before --"
    if others and _is_runnable(first, folder):
        return f"program and arguments are separate words, without quotes around both: {program}"
    if program in _SHELL_BUILTINS:
        return f"{program} is built into the shell: sh -c '{program} …'"
    if not _is_path(program):
        return "not found in PATH"
    place = Path(folder or ".").resolve() / program
    if not place.exists():
        return "no such file"
    return "a directory" if place.is_dir() else "not executable"
