"""Claims against the evidence: the answer says that tests pass or that the work is done, and the last run says otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase, first_line
from rung.detectors.behaviour.step_acts import has_failed
from rung.detectors.finding import Finding
from rung.detectors.loops import normalize
from rung.detectors.loops.side_effects import Effect, effect_of
from rung.detectors.output import claims_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.step import Step

TESTS_RULE: Final = "claim-against-tests"
FAILURE_RULE: Final = "claim-after-failure"
_TAIL_CHARS: Final = 1_500
_TESTS_PASS: Final = re.compile(
    r"\btests?\b[^.\n]{0,50}\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|are green|is green)\b|\bpass(?:es|ed|ing)? all (?:the )?tests\b",
    re.IGNORECASE,
)
# An answer that admits a failure, or only expects a success, claims nothing against the evidence.
_ADMITS: Final = re.compile(
    r"\b(?:fail\w*|errors?|not|cannot|unable|remain\w*|broken|however|except|unfortunately|partial\w*|still|skipped|todo|should"
    r"|would|will|expect\w*|once|pre-existing|unrelated|could)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


def claim_against_tests(answer: str, failing: str) -> Finding | None:
    """Return a finding if an answer claims passing tests or finished work while the last test run failed."""
    if not failing or not (_claims_tests(answer) or _claims_success(answer)):
        return None
    return _finding(TESTS_RULE, f"the answer claims success, but the last test run failed ({failing})", answer)


def claim_after_failure(answer: str, steps: Sequence[Step]) -> Finding | None:
    """Return a finding if an answer claims finished work and the last call failed."""
    acting = [step for step in steps if step.tool and effect_of(step.tool, None) not in (Effect.NONE, Effect.TALK)]
    if not acting or not has_failed(acting[-1]) or not _claims_success(answer):
        return None
    said = first_line(normalize.clipped(acting[-1].result))
    return _finding(
        FAILURE_RULE, f"the answer claims success, but the last call failed ({acting[-1].tool}: {said})", answer
    )


def _claims_tests(answer: str) -> bool:
    """Return whether a sentence says that the tests pass, and admits nothing."""
    parts = re.split(r"(?<=[.!?])\s+|\n", answer[-_TAIL_CHARS:])
    return any(_TESTS_PASS.search(part) and not _ADMITS.search(part) for part in parts)


def _claims_success(answer: str) -> bool:
    return claims_done(answer) and not _ADMITS.search(answer)


def _finding(rule: str, text: str, answer: str) -> Finding:
    return Finding(rule=rule, kind=Kind.UNVERIFIED, text=text, count=1, phase=Phase.RESULT, output=answer[:_TAIL_CHARS])
