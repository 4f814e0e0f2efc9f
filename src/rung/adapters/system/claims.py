"""Claims looked into where they can be: in the file system, and by running a test command afresh."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.process import run_command
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptTimeout
from rung.detectors.claims import ClaimCheck, claimed_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_TAIL: Final = 600
_SECONDS: Final = 600.0
_GRACE: Final = 2.0
Before = dict[str, tuple[int, int]]


def look(root: str | Path, paths: Iterable[str]) -> Before:
    """How these files are now, to be compared with later: size and time of the last change; a missing one is left out."""
    found: Before = {}
    for name in paths:
        state = _state(Path(root), name)
        if state is not None:
            found[name] = state
    return found


def check_files(
    root: str | Path, files: Iterable[str], *, since: float, before: Mapping[str, tuple[int, int]] | None = None
) -> list[ClaimCheck]:
    """Does each claimed file exist, and has it changed since the work began?

    `since` is the time it began, in seconds since 1970; `before` is what `look` saw then, where it was asked.
    """
    base = Path(root)
    return [_check_file(base, name, since, before or {}) for name in files]


def _check_file(base: Path, name: str, since: float, before: Mapping[str, tuple[int, int]]) -> ClaimCheck:
    claim = f"{name} was changed"
    state = _state(base, name)
    if state is None:
        return ClaimCheck(
            claim=claim, holds=False, seen="there is no such file" if _inside(base, name) else "outside the work tree"
        )
    # File systems tell time coarsely: what was written in the last moment before counts.
    changed = state != before[name] if name in before else state[1] >= int((since - _GRACE) * 1e9)
    return ClaimCheck(claim=claim, holds=changed, seen="changed" if changed else "not changed since the work began")


def _inside(base: Path, name: str) -> bool:
    try:
        return (base / name).resolve().is_relative_to(base.resolve())
    except (OSError, ValueError, RuntimeError):  # no name of a file, or links in a circle
        return False


def _state(base: Path, name: str) -> tuple[int, int] | None:
    if not _inside(base, name):
        return None
    try:
        found = (base / name).stat()
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns


def check_command(command: str | Sequence[str], root: str | Path, *, seconds: float = _SECONDS) -> ClaimCheck:
    """Run the test command that the task names, afresh, and read its exit code; no shell, and nothing stays behind.

    The command is the user's: never one that only the worker's own answer names.
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    claim = f"`{shlex.join(words)}` passes"
    try:
        done = run_command(words, seconds=seconds, cwd=root)
    except AttemptTimeout:
        return ClaimCheck(claim=claim, holds=False, seen=f"did not end within {seconds:g} s")
    except OSError as error:
        return ClaimCheck(claim=claim, holds=False, seen=f"cannot be run: {error.strerror or error}")
    told = clip((done.output + done.errors).strip()[-_TAIL:], _TAIL)
    seen = f"exit code {done.code}" + (f": {told}" if told and done.code else "")
    return ClaimCheck(claim=claim, holds=done.code == 0, seen=seen)


def check_claims(
    answer: str,
    root: str | Path,
    *,
    since: float,
    before: Mapping[str, tuple[int, int]] | None = None,
    command: str | Sequence[str] | None = None,
    seconds: float = _SECONDS,
) -> list[ClaimCheck]:
    """Look into what a closing answer claims: its files, and the test command if there is one. Costs no tokens."""
    checks = check_files(root, claimed_files(answer), since=since, before=before)
    if command is not None:
        checks.append(check_command(command, root, seconds=seconds))
    return checks
