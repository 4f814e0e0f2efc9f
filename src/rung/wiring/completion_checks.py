"""Completion checks of the `[stop]` table: output format, verified claims, and a judge command.

The free checks run first; the judge only sees work that passed them. Shared by all entry points.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.claims import check_claims, check_command
from rung.adapters.system.judge import CommandJudge
from rung.core.domain.failures import Kind, Phase
from rung.core.policy.stop_settings import DEFAULTS
from rung.detectors.claims import unverified
from rung.detectors.finding import Finding
from rung.detectors.judging import judge_case
from rung.detectors.output import OutputSpec, check_output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rung.core.domain.failures import Evidence
    from rung.detectors.claims import ClaimCheck
    from rung.detectors.step import Step

_FORMAT_KEYS: Final = ("sections", "json")


def verify_claims(
    stop: Mapping[str, Any], answer: str, root: str | Path, since: float, project: str | Path | None = None
) -> list[ClaimCheck]:
    """Verify an answer's claims: the files below `root` it says it changed, and the check command, run in `project`."""
    checks = check_claims(answer, root, since=since)
    if stop.get("check"):
        checks.append(check_command(stop["check"], project or root, seconds=stop.get("seconds", DEFAULTS.seconds)))
    return checks


def output_spec(stop: Mapping[str, Any], *, evidence: bool = False) -> OutputSpec:
    """Return the output format that the `[stop]` table requires."""
    return OutputSpec(json=stop.get("json", False), sections=tuple(stop.get("sections", ())), evidence=evidence)


def run_judge(
    stop: Mapping[str, Any],
    task: str,
    answer: str,
    steps: Sequence[Step],
    checks: Sequence[ClaimCheck],
    project: str | Path | None = None,
) -> Finding | None:
    """Run the judge command in `project`; return its finding, or None if it passes or none is set. A failing judge raises."""
    if not stop.get("judge"):
        return None
    judge = CommandJudge(stop["judge"], stop.get("judge_seconds", DEFAULTS.judge_seconds), project)
    evidence = judge(judge_case(task, answer, steps, checks)).evidence
    if evidence is None:
        return None
    return Finding(
        rule="judge", kind=evidence.finding or Kind.LOW_QUALITY, text=evidence.text, phase=Phase.RESULT, output=answer
    )


def output_check(stop: Mapping[str, Any], task: str, root: str | Path) -> Callable[[str], Evidence | None] | None:
    """Return the checks as a `validate` callable for `recover`; None if the table sets no format and no judge."""
    if not any(stop.get(key) for key in (*_FORMAT_KEYS, "judge")):
        return None
    started_at = time.time()

    def check(answer: str) -> Evidence | None:
        finding = check_output(answer, output_spec(stop)) if any(stop.get(key) for key in _FORMAT_KEYS) else None
        if finding is None and stop.get("judge"):
            checks = verify_claims({}, answer, root, started_at)
            finding = unverified(checks) or run_judge(stop, task, answer, (), checks)
        return None if finding is None else finding.evidence

    return check
