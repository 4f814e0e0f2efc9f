"""Files that differ from the last commit, as a short text for an agent that takes over; empty if that is not known."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

SECONDS: Final = 5.0
MAX_FILES: Final = 20
_GIT: Final = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=true")


def changed_files(folder: str | Path | None = None) -> str:
    """Return git's statistic of changed files in a directory, and the names of new ones."""
    statistic = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "--stat=100,70,20", "HEAD")
    new = _git(folder, "ls-files", "--others", "--exclude-standard").splitlines()
    lines = [statistic.rstrip(), *(f" {name} (new)" for name in new[:MAX_FILES])]
    if len(new) > MAX_FILES:
        lines.append(f" and {len(new) - MAX_FILES} more new files")
    return "\n".join(line for line in lines if line.strip())


def _git(folder: str | Path | None, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # no shell, constant arguments
            [*_GIT, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
