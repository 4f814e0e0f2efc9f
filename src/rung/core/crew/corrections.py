"""Corrections of a task: a fix for each of its first four errors. The fifth one goes to the replanner."""

from __future__ import annotations

from rung.core.crew.contract import MAX_ERROR_TRIES

SPENT_REASON = f"error {MAX_ERROR_TRIES} of the task gets no further fix"


def corrections_spent(errors: int) -> bool:
    """Return whether no further fix may be proposed. `errors` counts those of the task's whole life."""
    return errors >= MAX_ERROR_TRIES


def leaves_for_replanner(errors: int, *, error: int, answer: int, handoff: int, left_by_itself: bool) -> bool:
    """Return whether a worker that is gone left because its corrections are spent: then it gets no successor.

    `error`, `answer` and `handoff` are the ids of its last error, the last answer to the task and its last hand-over; 0 if
    there is none. Its last error has no answer, or it left by itself, without a hand-over, after one.
    """
    if not corrections_spent(errors) or not error:
        return False
    return answer < error or (left_by_itself and handoff < answer)
