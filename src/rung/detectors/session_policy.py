"""Policy of a session that Rung influences only by messages: a coding agent behind hooks, or one in a framework.

Nothing is retried and there is no fallback. The model is told what is wrong: a nudge for a failure; a new plan, a
different method and a forced finish for a loop. After the forced finish every call is denied; after three denials the
agent is stopped (a `Finish`).
"""

from __future__ import annotations

from typing import Final

from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action, Ladder, Rung
from rung.core.policy.budget import Budget
from rung.core.policy.policy import Policy
from rung.detectors.loop_settings import LoopSettings

MAX_NUDGES: Final = 2
MAX_DENIALS: Final = 3
_LOOPS: Final = frozenset({Kind.LOOP_DETECTED})
_NO_CAP: Final = 1e9  # a session never waits, so a Retry-After must not close a rung


def session_policy(loops: LoopSettings | None = None, *, nudges: int = MAX_NUDGES, name: str = "session") -> Policy:
    """Build the policy from loop settings and a number of nudges; its only limits are the rungs' tries."""
    loops = loops or LoopSettings()
    ladder = Ladder(
        name="session",
        about="A coding agent's own session, guided through its hooks.",
        rungs=(
            Rung(action=Action.NUDGE, tries=nudges, applies_to=frozenset(Kind) - _LOOPS),
            Rung(action=Action.REPLAN, tries=5, applies_to=_LOOPS),
            Rung(action=Action.REPLAN, name="explore", tries=3, applies_to=_LOOPS),
            Rung(action=Action.FORCE_DONE, tries=1 + MAX_DENIALS),
        ),
        entry={Kind.LOOP_DETECTED: "replan"},
        default_entry="nudge",
        loops=((loops.replan, "replan"), (loops.explore, "explore"), (loops.force_done, "force-done")),
    )
    budget = Budget(attempts=None, seconds=None)
    return Policy(ladder=ladder, name=name, unattended=True, budget=budget, retry_after_cap=_NO_CAP, patience=0.0)
