"""Policy files that the user names: read and validated as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.classifier import use_rules
from rung.wiring.settings_file import named

if TYPE_CHECKING:
    from pathlib import Path

    from rung.core.policy.parser import PolicyBook
    from rung.detectors.loop_settings import LoopSettings


def load_policy(path: str | Path) -> PolicyBook:
    """Return the policies of a file, after validating all of its tables."""
    return named(path).book()


def load_loop_settings(path: str | Path) -> LoopSettings:
    """Return the loop settings of a file's `[loops]` table, or the defaults."""
    file = named(path)
    file.book()
    return file.loops()


def load_rules(path: str | Path) -> None:
    """Install the `[[rules]]` of a policy file for the whole process.

    Args:
        path: Path of the TOML file.

    Raises:
        FileError: The file cannot be read, or a rule is invalid; the message names the key.
    """
    use_rules(*load_policy(path).rules)
