"""Preset ladders: five for users, and one for a conductor's helpers. Data only."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.error_size import Size
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.ladder import Action, Ladder, Rung, RungScope

if TYPE_CHECKING:
    from collections.abc import Mapping

# After these failures the model still answers, so it can report what it did; not so in an outage or without a key.
_MODEL_STILL_RESPONDS: Final = frozenset(
    {
        *GROUPS["result"],
        Kind.LOOP_DETECTED,
        Kind.STALLED,
        Kind.CAPABILITY_MISMATCH,
        Kind.TURNS_EXHAUSTED,
        Kind.NOT_FOUND,
        Kind.PERMISSION_DENIED,
    }
)
_TRUNCATED: Final = frozenset({Kind.OUTPUT_LIMIT, Kind.PARTIAL_OUTPUT, Kind.GAVE_UP, Kind.STREAM_INTERRUPTED})
# An invalid request is invalid for every other model too.
_FALLBACK_KINDS: Final = frozenset(Kind) - {Kind.INVALID_REQUEST}
_TERMINAL: Final = (Kind.MISSING_CREDENTIALS, Kind.AUTH_ERROR, Kind.BUDGET_EXHAUSTED, Kind.HOOK_CRASH)
_RETRIED: Final = (*GROUPS["transient"], Kind.MALFORMED_OUTPUT)


def _enter(rung: str, *kinds: Kind) -> dict[Kind, str]:
    return dict.fromkeys(kinds, rung)


TASK: Final = Ladder(
    name="task",
    about="One agent doing one task.",
    rungs=(
        Rung(action=Action.RETRY, tries=3, seconds=30, scope=RungScope.ACTION),
        Rung(action=Action.NUDGE, tries=3, seconds=300),
        Rung(action=Action.REPLAN, tries=1, seconds=900),
        # An upper bound: the policy's list of models and agents limits the tries.
        Rung(action=Action.FALLBACK, tries=9, seconds=1200),
        Rung(action=Action.FORCE_DONE, tries=1, seconds=60, applies_to=_MODEL_STILL_RESPONDS),
    ),
    entry={
        **_enter("retry", *GROUPS["transient"]),
        **_enter(
            "replan",
            Kind.GOAL_MISALIGNED,
            Kind.LOW_QUALITY,
            # Told once, then another model: of recorded failures by result, further tries of the same model fix few.
            Kind.TEST_FAILURE,
            Kind.LOOP_DETECTED,
            Kind.CONTEXT_LIMIT,
            Kind.ARCHITECTURAL_BLOCKER,
        ),
        **_enter("fallback", Kind.CAPABILITY_MISMATCH, Kind.MODEL_UNAVAILABLE, Kind.SERVICE_DOWN, Kind.QUOTA_EXHAUSTED),
        **_enter("force-done", *_TERMINAL),
    },
    default_entry="nudge",
    loops=((3, "replan"), (5, "fallback"), (8, "force-done")),
)

CALL: Final = Ladder(
    name="call",
    about="One model call inside an agent's loop.",
    rungs=(
        Rung(action=Action.RETRY, tries=3, scope=RungScope.ACTION),
        Rung(action=Action.RAISE_LIMIT, tries=1, applies_to=frozenset({Kind.OUTPUT_LIMIT})),
        Rung(action=Action.RESUME, tries=3, applies_to=_TRUNCATED | {Kind.MALFORMED_OUTPUT}),
        Rung(action=Action.COMPACT, tries=1, applies_to=frozenset({Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING})),
        Rung(action=Action.REPAIR, tries=1, applies_to=frozenset({Kind.INVALID_REQUEST})),
        Rung(action=Action.FALLBACK, tries=1, scope=RungScope.SESSION, applies_to=_FALLBACK_KINDS),
        Rung(action=Action.SURFACE, tries=1),
    ),
    entry={
        **_enter("retry", *_RETRIED),
        **_enter("raise-limit", Kind.OUTPUT_LIMIT),
        **_enter("resume", Kind.PARTIAL_OUTPUT, Kind.GAVE_UP),
        **_enter("compact", Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING),
        **_enter("repair", Kind.INVALID_REQUEST),
        **_enter("fallback", Kind.MODEL_UNAVAILABLE, Kind.SERVICE_DOWN, Kind.QUOTA_EXHAUSTED, Kind.CAPABILITY_MISMATCH),
    },
    default_entry="surface",
)

PIPELINE: Final = Ladder(
    name="pipeline",
    about="Stages of agents.",
    base_level=0,
    rungs=(
        Rung(action=Action.RETRY, tries=2, scope=RungScope.ACTION),
        Rung(
            action=Action.NUDGE,
            tries=1,
            applies_to=frozenset({Kind.PARTIAL_OUTPUT, Kind.UNVERIFIED, Kind.MALFORMED_OUTPUT}),
            max_missing_sections=2,
        ),
        Rung(action=Action.RESPAWN, tries=3),
        # Splitting the work differently fixes conflicts only: after three respawns a person is asked.
        Rung(action=Action.RESTRUCTURE, tries=1, applies_to=frozenset({Kind.SCOPE_CONFLICT, Kind.CLAIM_BLOCKED})),
        Rung(action=Action.ASK, tries=1),
    ),
    entry={
        **_enter("retry", *_RETRIED, Kind.TOOL_ERROR),
        **_enter("nudge", Kind.PARTIAL_OUTPUT, Kind.UNVERIFIED),
        **_enter("restructure", Kind.SCOPE_CONFLICT, Kind.CLAIM_BLOCKED),
        **_enter(
            "ask",
            Kind.STRATEGIC_AMBIGUITY,
            Kind.BEYOND_AUTHORITY,
            Kind.QUOTA_EXHAUSTED,
            Kind.SERVICE_DOWN,
            *_TERMINAL,
        ),
    },
    default_entry="respawn",
)

MODEL: Final = Ladder(
    name="model",
    about="A session with a model ladder.",
    rungs=(
        Rung(action=Action.RETRY, tries=3, scope=RungScope.ACTION),
        Rung(action=Action.RETRY_WITH_CONTEXT, tries=1),
        # An upper bound: the policy's list of models limits the tries.
        Rung(action=Action.ESCALATE, tries=9),
        Rung(action=Action.SURFACE, tries=1),
    ),
    entry={
        **_enter("retry", *_RETRIED),
        **_enter(
            "escalate",
            Kind.CONTEXT_LIMIT,
            Kind.MODEL_UNAVAILABLE,
            Kind.CAPABILITY_MISMATCH,
            Kind.SERVICE_DOWN,
            Kind.QUOTA_EXHAUSTED,
        ),
        **_enter("surface", *_TERMINAL),
    },
    default_entry="retry-with-context",
)

CREW: Final = Ladder(
    name="crew",
    about="A conductor's workers.",
    rungs=(
        # The session is the task: the conductor opens each incident with the fixes used in the task's earlier ones.
        # Four: the fifth error of a task gets no further fix.
        Rung(action=Action.FIX, tries=4, scope=RungScope.SESSION),
        Rung(action=Action.INVESTIGATE, tries=3, spent_with="fix"),  # another complex error is investigated, too
        Rung(action=Action.REPLAN, tries=3),
        Rung(action=Action.ASK, name="person", tries=1),
    ),
    entry={
        **_enter(
            "investigate",
            Kind.UNKNOWN,
            Kind.TEST_FAILURE,
            Kind.CONTENT_FILTER,
            Kind.REFUSAL,
            Kind.LOW_QUALITY,
            Kind.LOOP_DETECTED,
            Kind.CAPABILITY_MISMATCH,
        ),
        **_enter(
            "replan",
            Kind.REVIEW_EXHAUSTED,
            Kind.BEYOND_AUTHORITY,
            Kind.GOAL_MISALIGNED,
            Kind.SCOPE_CONFLICT,
            Kind.ARCHITECTURAL_BLOCKER,
        ),
        **_enter("person", Kind.STRATEGIC_AMBIGUITY, Kind.QUOTA_EXHAUSTED, Kind.SERVICE_DOWN, *_TERMINAL),
    },
    default_entry="fix",
    sizes={
        Size.SIMPLE: "fix",
        Size.COMPLEX: "investigate",
        Size.UNCERTAIN: "investigate",
        Size.BEYOND: "replan",
    },
)

# For a conductor's own helpers. Not in LADDERS: users do not choose it.
HELPER: Final = Ladder(
    name="helper",
    about="A helper command that a conductor asks.",
    rungs=(
        Rung(action=Action.RETRY, tries=2, scope=RungScope.ACTION),
        Rung(action=Action.FIX, tries=5),
        Rung(action=Action.ASK, name="person", tries=1),
    ),
    entry={
        **_enter("retry", *GROUPS["transient"]),
        **_enter(
            "person",
            *_TERMINAL,
            Kind.QUOTA_EXHAUSTED,
            Kind.SERVICE_DOWN,
            Kind.CONTENT_FILTER,
            Kind.REFUSAL,
            Kind.GOAL_MISALIGNED,
            Kind.ARCHITECTURAL_BLOCKER,
            Kind.CAPABILITY_MISMATCH,
            Kind.SCOPE_CONFLICT,
            Kind.STRATEGIC_AMBIGUITY,
            Kind.BEYOND_AUTHORITY,
            Kind.REVIEW_EXHAUSTED,
        ),
    },
    default_entry="fix",
)

LADDERS: Final[Mapping[str, Ladder]] = MappingProxyType(
    {ladder.name: ladder for ladder in (TASK, CALL, PIPELINE, MODEL, CREW)}
)
