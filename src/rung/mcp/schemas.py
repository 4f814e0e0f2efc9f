"""Result types of the MCP tools. Clients rely on their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict  # pydantic requires this one before Python 3.12

from rung.core.domain import events as ev
from rung.core.text.moments import format_span, rfc3339

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy


class NextStep(TypedDict):
    """Next recovery step. `step` is repeat, change, hand_over, ask or finish; `parked_until`: when a limit reopens."""

    step: str
    rung: str
    level: int
    wait_seconds: float
    parked_until: str | None
    instructions: str
    model: str
    agent: str
    question: str
    options: list[str]
    status: str
    reason: str
    kind: str
    retryable: bool
    rule: str
    incident: str


class KnownRemedy(TypedDict):
    """A rung tried on the same error before, and how often it worked."""

    rung: str
    tried: int
    worked: int


class KnownFailure(TypedDict):
    """Classification of an error, with advice and past remedies."""

    kind: str
    retryable: bool
    rule: str
    wait_seconds: float | None
    reopens_at: str | None
    summary: str
    helps: list[str]
    avoid: str
    fingerprint: str
    tried_before: list[KnownRemedy]


class LoopReport(TypedDict):
    """Result of a loop check. `stage` is replan, explore, force-done, or empty."""

    looping: bool
    stage: str
    rule: str
    count: int
    fact: str
    next: NextStep | None


class ReportAccepted(TypedDict):
    """Acknowledgement of a report."""

    noted: bool
    message: str


class SkippedRungReport(TypedDict):
    """A rung that was not taken, and why."""

    rung: str
    reason: str


class OutcomeReport(TypedDict):
    """Outcome of an incident: the `outcome` contract."""

    status: str
    completedSteps: list[str]
    failedAt: str | None
    failureReason: str | None
    escalationPath: list[int]
    recommendation: str | None
    errorType: str | None
    attempts: int
    seconds: float
    dollars: float
    model: str
    ladder: str
    incident: str
    skipped: list[SkippedRungReport]
    levels: list[dict[str, Any]]


_STEPS = {ev.Repeat: "repeat", ev.Change: "change", ev.HandOver: "hand_over", ev.Ask: "ask", ev.Finish: "finish"}


def next_step(incident: Incident, failure: Failure, decision: ev.Decision, policy: Policy, text: str) -> NextStep:
    """Return a decision in the form that an agent gets."""
    rung = policy.ladder.rungs[decision.rung]
    return {
        "step": _STEPS[type(decision)],
        "rung": rung.name,
        "level": policy.ladder.level(decision.rung),
        "wait_seconds": round(getattr(decision, "wait", 0.0), 3),
        "parked_until": None if incident.parked_until is None else rfc3339(incident.parked_until),
        "instructions": text or _default_instructions(decision),
        "model": getattr(decision, "model", ""),
        "agent": getattr(decision, "agent", ""),
        "question": getattr(decision, "question", ""),
        "options": [option.id for option in getattr(decision, "options", ())],
        "status": getattr(decision, "status", ""),
        "reason": str(decision.reason),
        "kind": failure.kind.value,
        "retryable": failure.retryable,
        "rule": failure.rule,
        "incident": incident.id,
    }


def _default_instructions(decision: ev.Decision) -> str:
    if isinstance(decision, ev.Repeat) and decision.parked and decision.until is not None:
        return (
            f"Stop here, and say so: the limit reopens at {rfc3339(decision.until)}, in {format_span(decision.wait)}. "
            "Nothing before then can succeed. After that time, make the same call again, unchanged."
        )
    if isinstance(decision, ev.Repeat):
        return f"Wait {decision.wait:.1f} seconds, then make the same call again, unchanged."
    if isinstance(decision, ev.Ask):
        return "Stop and ask a person; do not guess."
    if isinstance(decision, ev.HandOver):
        return "Hand the work over as it is; do not continue yourself."
    return "Stop here. Call finish_partial with what is finished; do not claim anything that was not done."
