"""Corrections of a task: when they are spent, and when a worker that is gone gets no successor."""

from __future__ import annotations

import pytest

from rung.core.crew.corrections import corrections_spent, leaves_for_replanner


def test_four_errors_are_corrected() -> None:
    """The first four errors of a task may get a fix, the fifth and later ones not."""
    assert [corrections_spent(errors) for errors in range(1, 8)] == [False] * 4 + [True] * 3


@pytest.mark.parametrize(
    ("errors", "error", "answer", "handoff", "left_by_itself", "expected"),
    [
        (5, 9, 8, 0, True, True),  # the fifth error has no answer
        (5, 9, 8, 0, False, True),  # and its worker was evicted meanwhile
        (5, 9, 8, 10, True, True),  # or has handed over
        (5, 9, 10, 0, True, True),  # left after the last fix
        (5, 9, 10, 11, True, False),  # a person has helped, and the worker has handed over
        (5, 9, 10, 0, False, False),  # died while it worked on that help
        (5, 0, 10, 0, True, False),  # the errors were those of an earlier worker
        (4, 9, 8, 0, True, False),
    ],
)
def test_who_leaves_for_the_replanner(
    errors: int, error: int, answer: int, handoff: int, left_by_itself: bool, expected: bool
) -> None:
    """A worker whose corrections are spent leaves for the replanner unless somebody has helped it since."""
    verdict = leaves_for_replanner(errors, error=error, answer=answer, handoff=handoff, left_by_itself=left_by_itself)
    assert verdict is expected
