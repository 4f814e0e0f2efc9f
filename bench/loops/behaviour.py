"""Count what the rules about behaviour report on labelled trajectories, by the label of the trajectory.

The labels are about loops. A report on a clean trajectory is listed with its text: it is a false alarm, or it has to be
explained. Constraints and answers need the task and the answer, which few recordings have.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rung.detectors.behaviour.review import review
from rung.detectors.behaviour.rules import BEHAVIOUR_RULES
from rung.detectors.loop_settings import RULES, LoopSettings
from rung.detectors.session_monitor import SessionMonitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bench.loops.score import Trajectory
    from rung.detectors.finding import Finding

LABELS: Final = ("loop", "ambiguous", "clean", "clean_hard")
WASTED: Final = "wasted-calls"
_WASTED_ALONE: Final = LoopSettings(ignore_rules=frozenset(RULES) - {WASTED})


@dataclass(slots=True, kw_only=True)
class BehaviourCounts:
    """Reports of each rule, by label; `alarms` are those on clean trajectories: id, position, rule, text."""

    by_rule: dict[str, Counter[str]] = field(default_factory=dict)
    rows: Counter[str] = field(default_factory=Counter)
    with_task: int = 0
    with_answer: int = 0
    alarms: list[tuple[str, int | None, str, str]] = field(default_factory=list)


def count_behaviour(rows: Iterable[Trajectory]) -> BehaviourCounts:
    """Run every rule over every trajectory; a rule counts once for a trajectory."""
    counts = BehaviourCounts(by_rule={name: Counter() for name in (WASTED, *BEHAVIOUR_RULES)})
    for row in rows:
        label = "loop" if row.loop else "ambiguous" if row.loop is None else _clean_label(row)
        counts.rows[label] += 1
        counts.with_task += bool(row.task)
        counts.with_answer += row.answer is not None
        found = {one.rule: one for one in reversed([*_wasted(row), *review(row.task, row.steps, row.answer)])}
        for name, finding in found.items():
            counts.by_rule[name][label] += 1
            if label.startswith("clean"):
                counts.alarms.append((row.id, finding.at, name, finding.text))
    return counts


def _clean_label(row: Trajectory) -> str:
    return "clean_hard" if row.kind == "clean_hard" else "clean"


def _wasted(row: Trajectory) -> Iterator[Finding]:
    monitor = SessionMonitor(_WASTED_ALONE)
    for step in row.steps:
        finding = monitor.check(step)
        if finding is not None:
            yield finding


def lines(counts: BehaviourCounts) -> Iterator[str]:
    """Yield the table of a count."""
    total = sum(counts.rows.values())
    yield f"trajectories reported by the rules about behaviour ({counts.with_task} of {total} have a task, {counts.with_answer} an answer)"
    yield f"{'':<24}" + "".join(f"{f'{label} ({counts.rows[label]})':>18}" for label in LABELS)
    for name, found in counts.by_rule.items():
        yield f"{name:<24}" + "".join(f"{found[label]:>18}" for label in LABELS)
    for identity, at, name, text in counts.alarms:
        yield f"  on a clean one: {identity} at {'the answer' if at is None else at}, {name}: {text[:160]}"
