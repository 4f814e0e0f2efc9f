"""Outcome: the result of a recovery, its JSON contracts and its reports."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rung.core.domain.dollars import format_dollars
from rung.core.domain.errors import AttemptError
from rung.core.domain.events import Ask, AttemptFailed, Decided, Repeat, Skipped, Status
from rung.core.domain.failures import Evidence, Kind
from rung.core.domain.level_record import level_records
from rung.core.domain.recommendation import failed_at, failure_reason, recommendation
from rung.core.domain.skipped_rungs import rung_name, rung_names, skipped_rungs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.ladder import Ladder

T = TypeVar("T")

SUCCESS_STATUSES: Final = frozenset({Status.SUCCEEDED, Status.RECOVERED})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome(Generic[T]):
    """Result of a recovery: its status, what was done, where it stopped and what a person should do.

    Attributes:
        status: succeeded, recovered, partial, blocked or failed.
        value: The result if `ok`, or the output of the last turn if partial; None if there is none.
        reason: Why the recovery stopped.
        recommendation: What a person should do.
        failure: The last failure; None if nothing failed.
        attempts: Attempts made.
        seconds: Seconds from the first attempt to the end.
        dollars: US dollars spent, as far as attempts reported them.
        path: Levels of the rungs used, lowest first.
        steps: Finished parts of the work, as attempts reported them.
        failed_at: Where the recovery stopped.
        model: Model that answered; without a success, the one that the request is on. Empty if the request named none.
        ladder: Name of the ladder.
        id: Id of the incident.
        events: All events in order.
        error: The last error, if the recovery did not succeed.
        skipped: Rungs that were not taken, and why.
        levels: Level records: schema `level-record`.
        probes: The part of `attempts` that only looked whether a service or a limit that was waited for is back.
        provider: Provider of `model`, as the policy's `models` name it; empty if they do not.
        attempt: Number of the attempt that gave the value; 0 if none did.

    Example:
        >>> import rung
        >>> outcome = rung.recover_sync(lambda request: "done", rung.Request(prompt="go", model="small"))
        >>> outcome.ok, outcome.value, outcome.model, outcome.attempt
        (True, 'done', 'small', 1)
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
    skipped: tuple[tuple[str, str], ...] = ()
    levels: tuple[Mapping[str, Any], ...] = ()
    probes: int = 0
    provider: str = ""
    attempt: int = 0

    def __repr__(self) -> str:
        """Return the outcome in a line; `events` and `levels` hold the whole story."""
        parts = [f"status={self.status.value!r}", f"value={self.value!r}", f"attempts={self.attempts}"]
        if not self.ok:
            parts.append(f"reason={self.reason!r}")
        return f"Outcome({', '.join(parts)})"

    @property
    def ok(self) -> bool:
        """Whether the recovery succeeded."""
        return self.status in SUCCESS_STATUSES

    def unwrap(self) -> T:
        """Return the value, or raise the last error with the history of the recovery as notes.

        Raises:
            Exception: The error of the last attempt; `AttemptError` if there is none.
        """
        if self.ok:
            return self.value  # type: ignore[return-value]  # a successful outcome has a value
        raise annotate(self.error or AttemptError(self.reason), self)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a JSON object: schema `outcome`. It has no value and no events."""
        return {
            "status": self.status.value,
            "completedSteps": list(self.steps),
            "failedAt": None if self.ok else self.failed_at,
            "failureReason": None if self.ok else self.reason,
            "escalationPath": list(self.path),
            "recommendation": None if self.ok else self.recommendation,
            "errorType": None if self.failure is None else self.failure.kind.value,
            "attempts": self.attempts,
            "probes": self.probes,
            "seconds": round(self.seconds, 3),
            "dollars": round(self.dollars, 6),
            "model": self.model,
            "provider": self.provider,
            "attempt": self.attempt,
            "ladder": self.ladder,
            "incident": self.id,
            "skipped": [{"rung": rung, "reason": reason} for rung, reason in self.skipped],
            "levels": [dict(record) for record in self.levels],
        }

    @property
    def partial_output(self) -> str:
        """The output of the last turn, else the last output of a failed attempt; empty if there is none."""
        if isinstance(self.value, str) and self.value:
            return self.value
        outputs = (event.failure.evidence.output for event in reversed(self.events) if isinstance(event, AttemptFailed))
        return next((output for output in outputs if output), "")

    def pipeline_failure(self, route_to: str = "lead") -> dict[str, Any]:
        """Return what a failed stage passes downstream: schema `pipeline-failure`.

        Args:
            route_to: Who gets it. Default: `lead`.
        """
        level = self.path[-1] if self.path else 0
        missing = self.failure.evidence.missing if self.failure is not None else ()
        return {
            "status": "FAIL",
            "failure_level": f"L{level}",
            "failure_type": self.failure.kind.value if self.failure is not None else Kind.UNKNOWN.value,
            "retry_count": sum(
                isinstance(event, Decided) and isinstance(event.decision, Repeat) for event in self.events
            ),
            "partial_output": self.partial_output or ", ".join(self.steps),
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
    provider: str = "",
) -> Outcome[Any]:
    """Return the outcome of a closed incident. `provider` is that of the model that answered, if it is known."""
    assert incident.status is not None  # noqa: S101  # the engine closes the incident first
    failure, names = incident.failure, rung_names(events)
    ok = incident.status in SUCCESS_STATUSES
    return Outcome(
        status=incident.status,
        value=value,
        reason="" if ok else failure_reason(incident),
        recommendation="" if ok else recommendation(failure, incident.reason),
        failure=failure,
        attempts=incident.attempts,
        seconds=now - incident.opened_at,
        dollars=incident.dollars,
        path=tuple(ladder.level(index) for index in incident.path),
        steps=incident.steps,
        failed_at="" if ok else failed_at(incident),
        model="" if incident.request is None else incident.request.model,
        ladder=ladder.name,
        id=incident.id,
        events=events,
        error=error,
        skipped=tuple((rung_name(rung, names), reason) for rung, reason in skipped_rungs(events)),
        levels=tuple(level_records(events, ladder)),
        probes=incident.probes,
        provider=provider,
        attempt=incident.attempts if incident.status in SUCCESS_STATUSES or value is not None else 0,
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
    names = rung_names(outcome.events)
    for event in outcome.events:
        if isinstance(event, AttemptFailed):
            failure = event.failure
            lines.append(f"rung:   {failure.kind} (rule {failure.rule}): {failure.message[:120]}")
        elif isinstance(event, Decided):
            decision = event.decision
            lines += [f"rung:     skipped {rung_name(rung, names)}: {reason}" for rung, reason in decision.skipped]
            lines.append(f"rung:   → {type(decision).__name__.lower()}: {decision.reason}")
        elif isinstance(event, Skipped):
            lines.append(f"rung:     skipped {rung_name(event.rung, names)}: {event.reason}")
    lines.append(f"rung: {outcome.recommendation}")
    return lines


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
        if record["status"] == "in_progress"
    ]
    lines += ["", f"{_count_attempts(outcome)}, {outcome.seconds:.0f} s, {format_dollars(outcome.dollars)}.", ""]
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
