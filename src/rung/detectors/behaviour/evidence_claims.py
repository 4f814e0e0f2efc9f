"""Claims against the evidence: the answer says that tests pass or that the work is done, and the last run says otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase, first_line
from rung.detectors.behaviour.step_acts import commands_of, has_failed, unwrapped
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
_TEST_COMMAND: Final = re.compile(
    r"(?:\S*/)?(?:python[\d.]*\s+-m\s+(?:pytest|unittest)|(?:poetry|uv|pipenv|hatch)\s+run\s+(?:\S+\s+)?(?:pytest|tox)|pytest|py\.test|tox|nox|jest|vitest"
    r"|mocha|rspec|phpunit|ctest|npx\s+(?:jest|vitest|mocha)|(?:npm|yarn|pnpm|bun)\s+(?:run\s+)?test|cargo\s+(?:test|nextest)"
    r"|go\s+test|make\s+(?:test|check)|mvn\s+(?:\S+\s+)*?test|(?:\./)?gradlew?\s+(?:\S+\s+)*?test|dotnet\s+test|mix\s+test"
    r"|python[\d.]*\s+(?:\S*/)?(?:manage\.py\s+test|runtests\.py))\b"
)
_FAILED: Final = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|\bFAILED \(|test result: FAILED|^--- FAIL|^FAIL\b"
    r"|Test failed|^FAILED\b|Failed tests|^[.sxXFE]*[FE][.sxXFE]*\s+\[\s*\d+%\]",
    re.MULTILINE,
)
_PASSED: Final = re.compile(
    r"\b[1-9]\d* (?:passed|passing)\b|^OK\b|test result: ok|^ok\s+\S+|^PASS\b|\b0 failures\b|100% tests passed|BUILD SUCCESS|^[.sxX]+\s+\[100%\]",
    re.MULTILINE,
)
_NOT_STARTED: Final = re.compile(
    r"command not found|No module named ['\"]?(?:pytest|tox|nox)|file or directory not found|found no collectors|no tests ran"
    r"|missing script: ['\"]?test|: not found\b"
)
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


def passed_tests(step: Step) -> bool | None:
    """Return whether a step ran tests that passed (True) or failed (False); None: it ran none, or it is not clear."""
    if not is_test_run(step):
        return None
    tail = normalize.clipped(step.result)[-_TAIL_CHARS:]
    if _FAILED.search(tail):
        return False
    return True if _PASSED.search(tail) and not step.error else None


def is_test_run(step: Step) -> bool:
    """Return whether a step runs a test suite; one that could not start is no run."""
    is_meant = any(_TEST_COMMAND.match(unwrapped(command)) for command in commands_of(step))
    return is_meant and _NOT_STARTED.search(normalize.clipped(step.result)) is None


def failing_tests(steps: Sequence[Step], before: str = "") -> str:
    """Return the command of the last test run if it failed and none passed since; `before` is the state before the steps.

    A later test run whose result is not clear ends the state too.
    """
    failing = before
    for step in steps:
        if is_test_run(step):
            failing = f"{step.tool}: {_test_command(step)}" if passed_tests(step) is False else ""
    return failing


def _test_command(step: Step) -> str:
    return first_line(next(one for one in commands_of(step) if _TEST_COMMAND.match(unwrapped(one))))


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
