"""Review of a session: everything that the detectors find in its task, its steps and its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rung.detectors.behaviour.answers import ignored_task
from rung.detectors.behaviour.constraints import read_constraints
from rung.detectors.behaviour.evidence_claims import claim_after_failure, claim_against_tests
from rung.detectors.behaviour.suite_runs import failing_tests
from rung.detectors.behaviour.violations import violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.finding import Finding
    from rung.detectors.step import Step


def review(task: str, steps: Sequence[Step], answer: str | None = None, *, root: str = "") -> list[Finding]:
    """Return the findings in the steps of an agent that are not loops: violated constraints, and claims that are not true.

    Args:
        task: What was asked.
        steps: Steps that the agent took.
        answer: Final answer. Default: None, it is not known, and nothing is said about it.
        root: Directory that relative paths of the task mean. Default: none.

    Returns:
        Findings, each with the position of its step in `at`; those about the answer come last.
    """
    constraints = read_constraints(task)
    found: dict[str, Finding] = {}
    for position, step in enumerate(steps):
        finding = violation(step, constraints, root)
        if finding is not None:
            found.setdefault(finding.text.partition("”")[0], replace(finding, at=position))  # once per constraint
    return [*found.values(), *([] if answer is None else review_answer(task, steps, answer))]


def review_answer(task: str, steps: Sequence[Step], answer: str, failing: str = "") -> list[Finding]:
    """Return what is wrong with a final answer: against the evidence, or beside the task. `failing`: see `failing_tests`."""
    found = claim_against_tests(answer, failing_tests(steps, failing)) or claim_after_failure(answer, steps)
    return [one for one in (found, ignored_task(task, answer, steps)) if one is not None]
