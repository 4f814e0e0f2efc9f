"""Stack traces of exceptions: frames of the caller's code, causes, bounds and secrets."""

from __future__ import annotations

import pytest

import rung
from rung.core.classify.stack_trace import MAX_FRAMES, MAX_STACK_CHARS, stack_of


def _deep(depth: int) -> None:
    if depth:
        _deep(depth - 1)
    raise ValueError("no")


def _caught(depth: int = 0) -> Exception:
    try:
        try:
            _deep(depth)
        except ValueError as cause:
            raise RuntimeError("outer") from cause
    except RuntimeError as error:
        return error
    raise AssertionError


def test_frames_and_causes() -> None:
    """Each frame names its file, line and function; the cause follows the error that it led to."""
    lines = stack_of(_caught()).splitlines()
    assert lines[0].startswith('File "')
    assert lines[0].endswith(", in _caught")
    assert lines[1:3] == ["RuntimeError", "caused by:"]
    assert lines[-2].endswith(", in _deep")
    assert lines[-1] == "ValueError"


def test_it_is_bounded() -> None:
    """A deep recursion keeps its last frames."""
    stack = stack_of(_caught(200))
    assert len(stack) <= MAX_STACK_CHARS
    assert stack.count(", in _deep") <= MAX_FRAMES


def test_nothing_of_rung_itself() -> None:
    """An error that Rung raised by itself, or that was never raised, has no stack."""
    with pytest.raises(rung.errors.ConfigError) as caught:
        rung.policy("none")
    assert stack_of(caught.value).count("File") == 1
    assert stack_of(ValueError("never raised")) == ""


def test_an_exception_that_refuses_to_be_read() -> None:
    """A hostile attribute leaves no stack, and raises nothing."""

    class Hostile(Exception):
        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]  # hostile on purpose
            raise OSError("no")

    assert stack_of(Hostile()) == ""


def test_equal_exceptions_have_their_own_stacks() -> None:
    """Equal exceptions share a classification, but each failure has the stack of its own exception."""

    def one(_: rung.Request) -> str:
        raise ValueError("the same")

    def other(_: rung.Request) -> str:
        raise ValueError("the same")

    policy = rung.policy("call", retries=0)
    for work in (one, other):
        failure = rung.recover_sync(work, "x", policy=policy).failure
        assert failure is not None
        assert failure.evidence.stack.splitlines()[0].endswith(f", in {work.__name__}")
