"""May finished work count as finished? What its form lacks, what its claims come to, and last what a judge says.

Free checks come first: a judge is asked about work that they found nothing wrong with. One place for every way in.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.claims import check_claims
from rung.adapters.system.judge import CommandJudge
from rung.core.domain.failures import Kind, Phase
from rung.core.policy.stop_settings import DEFAULTS
from rung.detectors.claims import unverified
from rung.detectors.finding import Finding
from rung.detectors.judging import case_of
from rung.detectors.output import OutputSpec, look_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rung.core.domain.failures import Evidence
    from rung.detectors.claims import ClaimCheck
    from rung.detectors.step import Step

_FORM: Final = ("sections", "json")


def verify_claims(stop: Mapping[str, Any], answer: str, root: str | Path, since: float) -> list[ClaimCheck]:
    """What its claims come to: files that it says it changed, and the project's own check, run afresh."""
    command = stop.get("check") or None
    return check_claims(answer, root, since=since, command=command, seconds=stop.get("seconds", DEFAULTS.seconds))


def output_spec(stop: Mapping[str, Any], *, evidence: bool = False) -> OutputSpec:
    """What an answer should be."""
    return OutputSpec(json=stop.get("json", False), sections=tuple(stop.get("sections", ())), evidence=evidence)


def run_judge(
    stop: Mapping[str, Any], task: str, answer: str, steps: Sequence[Step], checks: Sequence[ClaimCheck]
) -> Finding | None:
    """What the judge of the table finds wrong; None when it passes, or there is none. One that breaks raises."""
    if not stop.get("judge"):
        return None
    judge = CommandJudge(stop["judge"], stop.get("judge_seconds", DEFAULTS.judge_seconds))
    evidence = judge(case_of(task, answer, steps, checks)).evidence
    if evidence is None:
        return None
    return Finding(
        rule="judge", kind=evidence.finding or Kind.LOW_QUALITY, text=evidence.text, phase=Phase.RESULT, output=answer
    )


def output_check(stop: Mapping[str, Any], task: str, root: str | Path) -> Callable[[str], Evidence | None] | None:
    """The same as a `check` for `recover`; None where the table asks for nothing that a finished command can be asked."""
    if not any(stop.get(key) for key in (*_FORM, "judge")):
        return None
    began = time.time()

    def check(answer: str) -> Evidence | None:
        found = look_at(answer, output_spec(stop)) if any(stop.get(key) for key in _FORM) else None
        if found is None and stop.get("judge"):
            checks = verify_claims({}, answer, root, began)
            found = unverified(checks) or run_judge(stop, task, answer, (), checks)
        return None if found is None else found.evidence

    return check
