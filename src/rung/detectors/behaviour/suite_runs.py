"""Test runs among the steps of a session: which passed, which failed, and which could not start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import first_line
from rung.detectors.behaviour.step_acts import commands_of, unwrapped
from rung.detectors.loops import normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.step import Step

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


def passed_tests(step: Step) -> bool | None:
    """Return whether a step ran tests that passed (True) or failed (False); None: it ran none, or it is not clear."""
    if not is_test_run(step):
        return None
    tail = _output(step)[-_TAIL_CHARS:]
    if _FAILED.search(tail):
        return False
    return True if _PASSED.search(tail) and not step.error else None


def is_test_run(step: Step) -> bool:
    """Return whether a step runs a test suite; one that could not start is no run."""
    is_meant = any(_TEST_COMMAND.match(unwrapped(command)) for command in commands_of(step))
    return is_meant and _NOT_STARTED.search(_output(step)) is None


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


def _output(step: Step) -> str:
    """Return what a step printed; some agents report the output of a failed command as its error."""
    said = step.error if isinstance(step.error, str) else ""
    return "\n".join(filter(None, (said, normalize.clipped(step.result))))
