"""Score a loop detector: precision, recall, and delay."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from rung.core.domain.errors import ConfigError
from rung.detectors.step import Step, step_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from bench.loops.peers import Detector


class BadFile(Exception):
    """The file is invalid; the message names the line and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One run of an agent with the expected answer; `loop` is None where people disagree."""

    id: str
    steps: tuple[Step, ...]
    numbers: tuple[int, ...]
    loop: bool | None
    loop_at: int | None
    kind: str
    note: str
    task: str = ""
    answer: str | None = None
    outcome: str = ""


@dataclass(slots=True, kw_only=True)
class Score:
    """Result of a detector."""

    right: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        reported = self.right + len(self.false)
        return self.right / reported if reported else 1.0

    @property
    def recall(self) -> float:
        loops = self.right + len(self.missed)
        return self.right / loops if loops else 1.0

    @property
    def median_late(self) -> float | None:
        return median(self.late) if self.late else None


def read_trajectories(path: Path) -> list[Trajectory]:
    """Return all trajectories of a file; raise `BadFile` for the first invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path}: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(_trajectory(json.loads(line)))
            except (ValueError, KeyError, TypeError, ConfigError) as error:
                raise BadFile(f"{path}: line {number}: {error!r}") from error
    if not rows:
        raise BadFile(f"{path}: no trajectories")
    return rows


def _trajectory(row: dict[str, Any]) -> Trajectory:
    if row["loop"] not in (True, False, None):
        raise ValueError(f"loop: {row['loop']!r} is not true, false or null")
    return Trajectory(
        id=row["id"],
        steps=tuple(step_from(step) for step in row["steps"]),
        numbers=tuple(step.get("i", index) for index, step in enumerate(row["steps"])),
        loop=row["loop"],
        loop_at=row.get("loop_at"),
        kind=row.get("kind") or "",
        note=row.get("note") or "",
        outcome=row.get("outcome") or "",
        task=row.get("task") or _task_in(row["steps"]),
        answer=row["answer"] if isinstance(row.get("answer"), str) else _answer_in(row["steps"]),
    )


def _task_in(steps: list[dict[str, Any]]) -> str:
    """Return the task that an environment states in its first result; empty if none does."""
    first = str(steps[0].get("result") or "") if steps and steps[0].get("tool") == "reset" else ""
    return first.partition("Instruction:")[2].partition("[Search]")[0].strip()


def _answer_in(steps: list[dict[str, Any]]) -> str | None:
    """Return the final answer, if the last step is a call that gives it."""
    if not steps or steps[-1].get("tool") not in _ANSWERING:
        return None
    args = steps[-1].get("args")
    return args if isinstance(args, str) else " ".join(map(str, args.values())) if isinstance(args, dict) else None


_ANSWERING = frozenset({"final_answer", "reply_to_user"})


def score(make: Callable[[], Detector], rows: Iterable[Trajectory]) -> Score:
    """Run the detector after every step; the first finding counts."""
    found = Score()
    for row in rows:
        if row.loop is None:
            continue
        detector = make()
        at = rule = None
        for number, step in zip(row.numbers, row.steps, strict=True):
            rule = detector.check(step)
            if rule is not None:
                at = number
                break
        if at is None:
            if row.loop:
                found.missed.append(row.id)
        elif row.loop:
            found.right += 1
            found.rules[str(rule)] = found.rules.get(str(rule), 0) + 1
            if row.loop_at is not None:
                found.late.append(at - row.loop_at)
        else:
            found.false.append(row.id)
    return found
