"""Command lines that a user gives: split into words, and their program found before anything runs."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


def split_command(key: str, text: str) -> list[str]:
    """Return the words of a command line. Raises ConfigError for an empty one, or one with an open quote."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(key, text, f"a command ({str(error).lower()})") from None
    if not words:
        raise ConfigError(key, text, "a command")
    return words


def require_program(key: str, command: str | Sequence[str], folder: str | Path | None = None) -> list[str]:
    """Return the words of a command whose program exists. `folder` is the directory it will run in.

    Raises ConfigError otherwise: a program that cannot be started is a mistake of the caller, not a failure to recover from.
    A program that is a placeholder is known only when it runs.
    """
    words = split_command(key, command) if isinstance(command, str) else list(command)
    program = words[0] if words else ""
    if "{" in program:
        return words
    is_path = os.sep in program or (os.altsep is not None and os.altsep in program)
    place = str(Path(folder or ".").resolve() / program) if is_path else program
    if not program or shutil.which(place) is None:
        raise ConfigError(key, program, f"a program that can be run ({_why_not(place, is_path=is_path)})")
    return words


def _why_not(place: str, *, is_path: bool) -> str:
    if not is_path:
        return "not found in PATH"
    if not Path(place).exists():
        return "no such file"
    return "a directory" if Path(place).is_dir() else "not executable"
