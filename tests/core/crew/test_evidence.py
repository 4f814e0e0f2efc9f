"""Evidence for a review: which reports of tests are evidence, and which commands can never give any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.evidence import (
    NO_CHECK,
    NO_EVIDENCE,
    NOBODY_CHECKED,
    evidence_gap,
    runs_unchecked,
    shows_passing_tests,
)


@pytest.mark.parametrize(
    "tests",
    ["128 passed, 0 failed", "all pass", "`make test` passes", "31 passed", "12/12", "12 of 12 green", "OK (14 tests)",
     "pytest: exit code 0", "cargo test: ok", "no tests failed", "40 passed, 2 skipped", "make check succeeded",
     "`test ! -e not-run` passes", "12 passed (pytest -m 'not slow')", "14 passed, some warnings"],
)  # fmt: skip
def test_tests_that_were_run_and_pass_are_evidence(tests: str) -> None:
    """A count of passed tests, or the name of a command that passes, is enough."""
    assert shows_passing_tests(tests)
    assert evidence_gap(tests) == ""


@pytest.mark.parametrize(
    "tests",
    ["", "not run", "Not run yet", "none", "n/a", "no tests", "untested", "skipped", "should pass", "will pass later",
     "they don't pass", "0 passed", "11 of 12", "0/0", "some tests pass", "`all pass`", "pass?", "manual check looks fine", "password reset",
     "not all tests pass", "expected to pass", "I did not run them, but all pass"],
)  # fmt: skip
def test_anything_else_is_no_evidence(tests: str) -> None:
    """Silence, promises and doubts are not evidence."""
    assert evidence_gap(tests) == NO_EVIDENCE


def test_a_worker_without_a_check_cannot_be_told_to_run_one() -> None:
    """`rung worker run` without --check says so, and the gap is the crew's."""
    assert evidence_gap(NO_CHECK) == NOBODY_CHECKED


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    """No text stops the rule, and a text without a word of success is never evidence."""
    gap = evidence_gap(text)
    assert gap in ("", NO_EVIDENCE, NOBODY_CHECKED)
    if not any(word in text.lower() for word in ("pass", "ok", "green", "succe", "exit", "fail", "error", "/", "of")):
        assert gap


def test_which_commands_run_unchecked() -> None:
    """Only options before `--` are the worker's own."""
    assert runs_unchecked(["rung", "worker", "run", "--", "claude", "-p", "{instruction}", "--check", "x"])
    assert runs_unchecked(["python", "-m", "rung", "worker", "run", "make"])
    assert not runs_unchecked(["rung", "worker", "run", "--check", "make test", "--", "claude"])
    assert not runs_unchecked(["rung", "worker", "run", "--check=make test", "--", "claude"])
    assert not runs_unchecked(["python", "worker.py", "--", "worker", "run"])
