"""Outcome: the result of a recovery, its JSON contracts and its reports."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rung.core.domain.errors import AttemptError
from rung.core.domain.events import Ask, AttemptFailed, Decided, Status
from rung.core.domain.failures import Evidence, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Ladder

T = TypeVar("T")

SUCCESS_STATUSES: Final = frozenset({Status.SUCCEEDED, Status.RECOVERED})

_RECOMMENDATIONS: Final[Mapping[Kind, str]] = {
    Kind.MISSING_CREDENTIALS: "Provide the missing credentials, then run it again.",
    Kind.AUTH_ERROR: "Check the key or token: the provider rejects it. Then run it again.",
    Kind.QUOTA_EXHAUSTED: "Add credit or wait until the plan's limit resets, then run it again.",
    Kind.BUDGET_EXHAUSTED: "Raise the budget if the work is worth it, then run it again.",
    Kind.RATE_LIMIT: "Wait for the limit to reset, or spread the calls; then run it again.",
    Kind.SERVICE_DOWN: "Run it again when the service is back, or add another model to fall back to.",
    Kind.OVERLOADED: "Run it again when the service is less busy, or add another model to fall back to.",
    Kind.CONTEXT_LIMIT: "Split the task, or give it to a model with a larger context.",
    Kind.TEST_FAILURE: "Look at the failing test; the agent did not find the cause.",
    Kind.LOOP_DETECTED: "Look at what it kept repeating; provide the missing fact or permission.",
    Kind.STRATEGIC_AMBIGUITY: "Decide which approach to take, then run it again with that decision.",
    Kind.TURNS_EXHAUSTED: "Give it more turns, or a smaller task.",
    Kind.CAPABILITY_MISMATCH: "Give it to an agent or a model that can do this, or do this part yourself.",
    Kind.PERMISSION_DENIED: "Grant the missing permission, or tell it where it may work.",
    Kind.TIMEOUT: "Give it more time or a smaller task, or find out what it waited for.",
    Kind.NETWORK: "Check the connection to the service, then run it again.",
    Kind.CONFIGURATION: "Correct the setting named in the error, then run it again.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[T]):
    """Result of a recovery: its status, what was done, where it stopped and what a person should do.

    `value` is the result if `ok`, or the output of the last turn if partial. `model` is the model that the next call
    should use. `events` holds all events in order.
    """

    status: Status
    value: T | None
    reason: str
    recommendation: str
    failure: Failure | None
    attempts: int
    seconds: float
    dollars: float
    path: tuple[int, ...]
    steps: tuple[str, ...]
    failed_at: str
    model: str
    ladder: str
    id: str
    events: tuple[Event, ...]
    error: Exception | None = None

    @property
    def ok(self) -> bool:
        """Whether the recovery succeeded."""
        return self.status in SUCCESS_STATUSES

    def unwrap(self) -> T:
        """Return the value, or raise the last error with the history of the recovery as notes."""
        if self.ok:
            return self.value  # type: ignore[return-value]  # a successful outcome has a value
        raise annotate(self.error or AttemptError(self.reason), self)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a JSON object: schema `outcome`."""
        return {
            "status": self.status.value,
            "completedSteps": list(self.steps),
            "failedAt": None if self.ok else self.failed_at,
            "failureReason": None if self.ok else self.reason,
            "escalationPath": list(self.path),
            "recommendation": None if self.ok else self.recommendation,
            "errorType": None if self.failure is None else self.failure.kind.value,
            "attempts": self.attempts,
            "seconds": round(self.seconds, 3),
            "dollars": round(self.dollars, 6),
            "model": self.model,
            "ladder": self.ladder,
            "incident": self.id,
        }

    def pipeline_failure(self, route_to: str = "lead") -> dict[str, Any]:
        """Return what a failed stage passes downstream: schema `pipeline-failure`."""
        level = self.path[-1] if self.path else 0
        missing = self.failure.evidence.missing if self.failure is not None else ()
        return {
            "status": "FAIL",
            "failure_level": f"L{level}",
            "failure_type": self.failure.kind.value if self.failure is not None else Kind.UNKNOWN.value,
            "retry_count": max(0, self.attempts - 1),
            "partial_output": ", ".join(self.steps),
            "missing": ", ".join(missing) or self.failed_at,
            "route_to": route_to,
        }


def build_outcome(
    incident: Incident,
    ladder: Ladder,
    events: tuple[Event, ...],
    *,
    value: Any,
    error: Exception | None,
    now: float,
    sticky: bool,
) -> Outcome[Any]:
    """Return the outcome of a closed incident; with `sticky`, a later call stays on the model handed over to."""
    assert incident.status is not None  # noqa: S101  # the engine closes the incident first
    next_request = incident.request if sticky and incident.status in SUCCESS_STATUSES else incident.first_request
    failure = incident.failure
    return Outcome(
        status=incident.status,
        value=value,
        reason=incident.reason,
        recommendation=recommendation(failure),
        failure=failure,
        attempts=incident.attempts,
        seconds=now - incident.opened_at,
        dollars=incident.dollars,
        path=tuple(ladder.level(index) for index in incident.path),
        steps=incident.steps,
        failed_at=failed_at(incident),
        model="" if next_request is None else next_request.model,
        ladder=ladder.name,
        id=incident.id,
        events=events,
        error=error,
    )


E = TypeVar("E", bound=BaseException)


def annotate(error: E, outcome: Outcome[Any]) -> E:
    """Add the history of the recovery to the error as notes, and mark it so that an outer ladder does not repeat it."""
    evidence = outcome.failure.evidence if outcome.failure is not None else Evidence(text=outcome.reason)
    kind = outcome.failure.kind if outcome.failure is not None else Kind.UNKNOWN
    with suppress(Exception):  # a third-party class may refuse anything: then its error is raised as it is
        if error.__dict__.get("__rung_outcome__") is outcome:
            return error  # annotated by an earlier unwrap
        for note in note_lines(outcome):
            error.add_note(note)
        error.__dict__["__rung_evidence__"] = evidence._replace(finding=kind, spent=True)
        error.__dict__["__rung_outcome__"] = outcome
    return error


def _count_attempts(outcome: Outcome[Any]) -> str:
    return f"{outcome.attempts} attempt{'s' * (outcome.attempts != 1)}"


def note_lines(outcome: Outcome[Any]) -> list[str]:
    """Return the failures and decisions of a recovery, one line each."""
    lines = [f"rung: {outcome.status} after {_count_attempts(outcome)} in {outcome.seconds:.1f} s: {outcome.reason}"]
    for event in outcome.events:
        if isinstance(event, AttemptFailed):
            failure = event.failure
            lines.append(f"rung:   {failure.kind} (rule {failure.rule}): {failure.message[:120]}")
        elif isinstance(event, Decided):
            decision = event.decision
            lines.append(f"rung:   → {type(decision).__name__.lower()}: {decision.reason}")
    lines.append(f"rung: {outcome.recommendation}")
    return lines


def recommendation(failure: Failure | None) -> str:
    """Return what a person should do about a failure."""
    if failure is None:
        return "Run it again."
    general = f"Look at the error ({failure.kind}); change what it names, then run it again."
    return _RECOMMENDATIONS.get(failure.kind, general)


def failed_at(incident: Incident) -> str:
    """Return where the recovery stopped: the attempt, and the last finished step."""
    attempt = f"attempt {incident.attempts}"
    return f"{attempt}, after: {incident.steps[-1]}" if incident.steps else attempt


def level_records(events: tuple[Event, ...], ladder: Ladder, epoch: float = 0.0) -> list[dict[str, Any]]:
    """Return one record for each transition to another rung: schema `level-record`."""
    from datetime import UTC, datetime

    records: list[dict[str, Any]] = []
    levels: list[int] = []
    kind = Kind.UNKNOWN.value
    for event in events:
        failure = getattr(event, "failure", None)
        kind = failure.kind.value if failure is not None else kind
        if not isinstance(event, Decided):
            continue
        level = ladder.level(event.decision.rung)
        if levels and levels[-1] >= level:
            continue  # a retry while on a higher rung is not a transition
        records.append(
            {
                "recoveryLevel": level,
                "recoveryAction": ladder.rungs[event.decision.rung].action.value,
                "errorType": kind,
                "previousLevels": list(levels),
                "enteredAt": datetime.fromtimestamp(epoch + event.at, UTC).isoformat(),
            }
        )
        levels.append(level)
    return records


def report_text(outcome: Outcome[Any], ladder: Ladder) -> str:
    """Return the report of a blocked incident in Markdown."""
    from datetime import UTC, datetime

    opened = outcome.events[0].at if outcome.events else 0.0
    when = datetime.fromtimestamp(opened + outcome.seconds, UTC).isoformat(timespec="seconds")
    kind = outcome.failure.kind if outcome.failure is not None else Kind.UNKNOWN
    lines = [f"# BLOCKED: {kind} ({when})", "", outcome.reason, "", "## What was tried", ""]
    lines += [
        f"- level {record['recoveryLevel']}, {record['recoveryAction']}, after {record['errorType']}"
        for record in level_records(outcome.events, ladder)
    ]
    lines += ["", f"{_count_attempts(outcome)}, {outcome.seconds:.0f} s, ${outcome.dollars:.2f}.", ""]
    lines += ["## Why it failed", ""]
    lines += [
        f"- {event.failure.kind}: {event.failure.message[:300]}"
        for event in outcome.events
        if isinstance(event, AttemptFailed)
    ]
    done = ", ".join(outcome.steps) or "nothing"
    lines += ["", "## Where it stands", "", f"Done: {done}. Stopped at {outcome.failed_at}.", "", "## Options", ""]
    lines += [f"{n}. {option}" for n, option in enumerate(_options(outcome), 1)]
    return "\n".join(lines) + "\n\n"


def _options(outcome: Outcome[Any]) -> tuple[str, ...]:
    asked = [
        event.decision for event in outcome.events if isinstance(event, Decided) and isinstance(event.decision, Ask)
    ]
    if asked:
        return tuple(option.label for option in asked[-1].options)
    return (
        outcome.recommendation,
        "Narrow the task or split it differently, and start it again.",
        "Stop here and keep the finished parts.",
    )
