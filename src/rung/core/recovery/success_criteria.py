"""Criteria of the success figures: transient errors, manual restarts, and failures that no other model ends."""

from __future__ import annotations

from typing import Final

from rung.core.domain.failures import PASSING_KINDS, Kind

# Actions in the audit trail: of sessions, incidents, runs and tasks of a crew.
RESTART_ACTIONS: Final = ("retry", "escalate", "answer", "wake", "resume", "reset", "fix")
_ENDING_ANSWERS: Final = frozenset({"stop", "decline"})

# Errors that pass by themselves: the ones that an automatic retry is for.
TRANSIENT_ERRORS: Final = PASSING_KINDS
# Failures that no other model ends: the account or the settings must change first.
ACCOUNT_KINDS: Final = frozenset(
    {
        Kind.AUTH_ERROR,
        Kind.MISSING_CREDENTIALS,
        Kind.PERMISSION_DENIED,
        Kind.CONFIGURATION,
        Kind.QUOTA_EXHAUSTED,
        Kind.BUDGET_EXHAUSTED,
    }
)


def is_manual_restart(action: str, option: str = "") -> bool:
    """Whether a person's action makes work run again. `option` is the answer to a question, if the action is one."""
    return action in RESTART_ACTIONS and not (action == "answer" and option in _ENDING_ANSWERS)
