"""Accuracy of the root cause of a session, on trajectories whose first wrong step was labelled by hand.

Each line of the file is a JSON object: id, step (null: no single step is recorded), also (other steps that a careful person
could defend). The default is RUNG_ROOT_CAUSES, or ../shared/corpus/collected/root_causes.jsonl.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.core.recovery.root_cause import root_cause
from rung.detectors.session_steps import session_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.loops.score import Trajectory

DEFAULT: Final = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "collected" / "root_causes.jsonl"


@dataclass(slots=True, kw_only=True)
class RootCauseScore:
    """Result: `right` and `near` (a step of `also`) of those answered; `kept` abstained where no step is labelled."""

    labelled: int = 0
    with_step: int = 0
    right: int = 0
    near: int = 0
    wrong: list[str] = field(default_factory=list)
    kept: int = 0
    silent: list[str] = field(default_factory=list)

    @property
    def answered(self) -> int:
        return self.right + self.near + len(self.wrong)


def labels_file() -> Path:
    return Path(os.environ.get("RUNG_ROOT_CAUSES") or DEFAULT)


def score_root_causes(rows: Sequence[Trajectory], path: Path) -> RootCauseScore:
    """Compare the answers with the labels of a file."""
    by_id = {row.id: row for row in rows}
    score = RootCauseScore()
    for line in path.read_text(encoding="utf-8").splitlines():
        label = json.loads(line)
        row = by_id.get(label["id"])
        if row is None:
            continue
        score.labelled += 1
        score.with_step += label["step"] is not None
        found = root_cause(session_steps(row.steps, row.task, row.numbers), row.outcome)
        if found.step is None:
            score.kept += label["step"] is None
            if label["step"] is not None:
                score.silent.append(f"{row.id}: labelled {label['step']}; {found.sentence}")
        elif found.step == label["step"]:
            score.right += 1
        elif found.step in label["also"]:
            score.near += 1
        else:
            score.wrong.append(f"{row.id}: labelled {label['step']}, answered {found.step}: {found.sentence[:140]}")
    return score


def lines(score: RootCauseScore, *, details: bool) -> Iterator[str]:
    """Yield the report of a score."""
    answered, exact, lenient = score.answered, score.right, score.right + score.near
    yield f"root cause of {score.labelled} failed trajectories, {score.with_step} with a labelled step"
    yield f"  answered {answered} ({_share(answered, score.labelled)}); abstained rightly {score.kept} of {score.labelled - score.with_step}"
    yield f"  exact step of those with a label: {_share(exact, score.with_step)}"
    yield f"  precision of the answers: exact {_share(exact, answered)}, or a step that can be defended {_share(lenient, answered)}"
    if details:
        yield from (f"  wrong: {one}" for one in score.wrong)
        yield from (f"  silent: {one}" for one in score.silent)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"
