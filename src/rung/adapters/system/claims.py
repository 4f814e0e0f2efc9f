"""Verification of an agent's claims: changed files in the file system, and a test command run again."""

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

_MAX_OUTPUT_CHARACTERS: Final = 600
_TIMEOUT_SECONDS: Final = 600.0
_TIMESTAMP_GRACE_SECONDS: Final = 2.0
Before = dict[str, tuple[int, int]]


def snapshot_files(root: str | Path, paths: Iterable[str]) -> Before:
    """Return size and modification time of these files, for a later comparison. Missing files are left out."""
    states: Before = {}
    for name in paths:
        state = _state(Path(root), name)
        if state is not None:
            states[name] = state
    return states


def check_files(
    root: str | Path, files: Iterable[str], *, since: float, before: Mapping[str, tuple[int, int]] | None = None
) -> list[ClaimCheck]:
    """Check that each claimed file exists and has changed since the work began.

    `since` is the start of the work in Unix seconds; `before` is an optional result of `snapshot_files` from that time.
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
    # File system timestamps are coarse: a write shortly before the start counts.
    changed = state != before[name] if name in before else state[1] >= int((since - _TIMESTAMP_GRACE_SECONDS) * 1e9)
    return ClaimCheck(claim=claim, holds=changed, seen="changed" if changed else "not changed since the work began")


def _inside(base: Path, name: str) -> bool:
    try:
        return (base / name).resolve().is_relative_to(base.resolve())
    except (OSError, ValueError, RuntimeError):  # an invalid file name, or a loop of links
        return False


def _state(base: Path, name: str) -> tuple[int, int] | None:
    if not _inside(base, name):
        return None
    try:
        stat = (base / name).stat()
    except (OSError, ValueError):
        return None
    return stat.st_size, stat.st_mtime_ns


def check_command(command: str | Sequence[str], root: str | Path, *, seconds: float = _TIMEOUT_SECONDS) -> ClaimCheck:
    """Run the task's test command, without a shell, and check its exit code.

    The command comes from the user, never from the worker's answer.
    """
    argv = shlex.split(command) if isinstance(command, str) else list(command)
    claim = f"`{shlex.join(argv)}` passes"
    try:
        done = run_command(argv, seconds=seconds, cwd=root)
    except AttemptTimeout:
        return ClaimCheck(claim=claim, holds=False, seen=f"did not end within {seconds:g} s")
    except OSError as error:
        return ClaimCheck(claim=claim, holds=False, seen=f"cannot be run: {error.strerror or error}")
    output = clip((done.output + done.errors).strip()[-_MAX_OUTPUT_CHARACTERS:], _MAX_OUTPUT_CHARACTERS)
    seen = f"exit code {done.code}" + (f": {output}" if output and done.code else "")
    return ClaimCheck(claim=claim, holds=done.code == 0, seen=seen)


def check_claims(
    answer: str,
    root: str | Path,
    *,
    since: float,
    before: Mapping[str, tuple[int, int]] | None = None,
    command: str | Sequence[str] | None = None,
    seconds: float = _TIMEOUT_SECONDS,
) -> list[ClaimCheck]:
    """Check the claims of a final answer: its files, and the test command if there is one. Uses no tokens."""
    checks = check_files(root, claimed_files(answer), since=since, before=before)
    if command is not None:
        checks.append(check_command(command, root, seconds=seconds))
    return checks
