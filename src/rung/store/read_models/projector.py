"""Projector of one incident: folds its events and derives the changes to the read models."""

from __future__ import annotations

import json
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.error_types import failure_type
from rung.core.domain import events as ev
from rung.core.domain.failures import Phase, short_hash
from rung.core.domain.incident import Incident
from rung.store.read_models.batch import (
    DAY_SECONDS,
    HOUR_SECONDS,
    MAX_MESSAGE_CHARS,
    ROWS,
    AttemptBucket,
    ReadModelBatch,
)
from rung.store.read_models.prompt_templates import prompt_pattern
from rung.store.read_models.rung_history import RungHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rung.core.domain.failures import Failure
    from rung.core.domain.request import Request

MAX_TOOL_CHARS: Final = 100
_ATTEMPT_DOLLARS: Final = ROWS["attempt"].index("dollars")
_OWN_DOLLARS: Final = ROWS["incident"].index("own_dollars")
_RESTORED_AT: Final = ROWS["model_change"].index("restored_at")


class IncidentProjector:
    """State of an incident that its rows need and a single event does not contain.

    An attempt that was rejected before it began (circuit open, deadline passed) is a failure but not an attempt: it
    leads to a decision and is not counted anywhere else.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.incident = Incident()
        self.event_count = 0
        self.failures = 0
        self.first_failure: Failure | None = None
        self.fingerprint = ""  # of the first failure, cached because it is computed
        self.last_fingerprint = ""  # of the failure that the next attempt tries to resolve
        self.digest = ""  # of the first request, cached
        self.pattern = ""  # id of the first prompt's pattern
        self.failed_at: float | None = None
        self.touched_at = 0.0
        self.ended_at: float | None = None
        self.due_at: float | None = None
        self.last_rung = ""
        self.highest_rung = -1
        self.rung_history = RungHistory(name)
        self.prompt = ""
        self.pending_question: tuple[int, float, ev.Ask] | None = None  # position, time and decision
        self.asks = 0
        self.orders = 0  # interventions of operators
        self.model_change: list[Any] | None = None  # row of the model change in force
        self.escalations = 0
        self.own_dollars = 0.0  # without the cost of recoveries nested in its attempts
        self.nested_dollars = 0.0  # cost of recoveries nested in the running attempt
        self.last_attempt_at = 0.0  # end of the last attempt
        self.last_attempt: tuple[list[Any], AttemptBucket] | None = None  # its row, and where it is counted
        self.effect_key: tuple[Any, ...] | None = None  # where its effect is counted
        self.end_key: tuple[Any, ...] | None = None  # where the end is counted

    def apply(
        self, n: int, event: ev.Event, changes: ReadModelBatch, store_request: Callable[[Request, str, float], object]
    ) -> bool:
        """Fold one event and add its changes; return whether it ended the incident."""
        before, was_ended = self.incident.request, self.ended_at is not None
        self.incident.fold(event)
        self.due_at = self.incident.parked_until  # a parked incident stays so while its process is gone
        self.event_count += 1
        self.touched_at = max(self.touched_at, event.at)
        if isinstance(event, ev.Opened):
            self._opened(event, changes, store_request)
        elif isinstance(event, ev.AttemptFailed):
            self._failed(n, event, changes)
        elif isinstance(event, ev.AttemptSucceeded):
            own = self._attempt(n, event, changes, None, "")
            result = "forced" if self.incident.status is ev.Status.PARTIAL else "saved"
            self._ended(event.at, changes, result, attempts=1, dollars=own)
        elif isinstance(event, ev.Decided):
            self._decided(n, event, changes, before.model if before is not None else "")
        elif isinstance(event, ev.Changed):
            self.prompt = event.prompt
            store_request(event.request, event.digest, event.at)
        elif isinstance(event, ev.Skipped):
            self.rung_history.skip(event.rung, event.at, changes)
        elif isinstance(event, ev.Answered) and self.pending_question is not None:
            self._put_ask(changes, "answered", event.option, event.at)
            self._update_session(changes, event.at, status="recovering")
            self.pending_question = None
        elif isinstance(event, ev.ModelRestored) and self.model_change is not None:
            self.model_change[_RESTORED_AT] = event.at
            changes.put("model_change", *self.model_change)
            self.model_change = None
        elif isinstance(event, ev.Closed | ev.Cancelled):
            self._ended(event.at, changes)
        else:
            self._noted(n, event, changes)
        return not was_ended and self.ended_at is not None

    def put_row(self, changes: ReadModelBatch) -> None:
        """Add the incident's row; call it once after all events of a batch."""
        changes.put("incident", *self._row())

    # -- one kind of event each -----------------------------------------------------------------------

    def _opened(
        self, event: ev.Opened, changes: ReadModelBatch, store_request: Callable[[Request, str, float], object]
    ) -> None:
        self._update_session(changes, event.at, status="working", incidents=1)
        changes.add("project", (self.project,), 1, 0, 0, 0.0, event.at, event.at)
        if event.request is not None:
            (self.digest,) = self.incident.digests
            if text := prompt_pattern(event.request):
                self.pattern = short_hash(text, 6)
                changes.put("pattern", self.pattern, text, event.at)
            store_request(event.request, self.digest, event.at)

    def _failed(self, n: int, event: ev.AttemptFailed, changes: ReadModelBatch) -> None:
        failure = event.failure
        mark = failure.fingerprint
        if self.first_failure is None:
            self.first_failure, self.fingerprint, self.failed_at = failure, mark, event.at
        own, message = 0.0, failure.message[:MAX_MESSAGE_CHARS]
        if event.made:
            self.failures += 1
            own = self._attempt(n, event, changes, failure, mark)
            key = (self.project, mark)
            changes.add("by_message", (int(event.at // DAY_SECONDS), *key), 1)
            changes.group(key, failure.kind.value, message, self.name, event.at, event.at, 1)
            self.last_fingerprint = mark
        made = int(event.made)
        self._update_session(
            changes, event.at, status="recovering", kind=failure.kind.value, message=message, attempts=made,
            failures=made, dollars=own,
        )  # fmt: skip

    def _attempt(
        self, n: int, event: ev.AttemptFailed | ev.AttemptSucceeded, changes: ReadModelBatch, failure: Failure | None, mark: str
    ) -> float:  # fmt: skip
        """Add an attempt's row and all its counts except the session's; return its own cost."""
        at, seconds = event.at, event.seconds
        # Less than 0 if a nested recovery was resumed: an attempt that was cut off has counted what it cost before.
        own, self.nested_dollars = max(-self.own_dollars, event.dollars - self.nested_dollars), 0.0
        self.last_attempt_at = at
        self.own_dollars += own
        kind, rule, phase, tool, message, coarse = "", "", "", "", "", ""
        terms, model = self.incident.terms, self.model
        if failure is not None:
            kind, rule, phase = failure.kind.value, failure.rule, failure.evidence.phase.value
            tool, message = _tool(failure), failure.message[:MAX_MESSAGE_CHARS]
            coarse = failure_type(failure).value
            changes.add("by_error_type", (int(at // HOUR_SECONDS), terms.project, model, kind, coarse), 1)
        row = [
            self.name, n, self.incident.attempts, at, seconds, own, terms.project, terms.session,
            model, self.agent, self.last_rung, self.prompt, int(failure is None), kind, rule, phase, tool, mark, message,
            coarse,
        ]  # fmt: skip
        changes.put("attempt", *row)
        day, latency = int(at // DAY_SECONDS), round(4 * log2(max(seconds * 1_000, 1)))
        bucket = AttemptBucket(
            day, int(at // HOUR_SECONDS), terms.project, terms.session, model, tool, kind, self.pattern, latency, failure is not None
        )  # fmt: skip
        changes.attempt(bucket, seconds, own, at)
        self.last_attempt = (row, bucket)
        self._count_effect(day, event, own, changes)
        return own

    def _noted(self, n: int, event: ev.Event, changes: ReadModelBatch) -> None:
        if isinstance(event, ev.Charged):
            self._charged(event, changes)
        elif isinstance(event, ev.Ordered):
            self.orders += 1
        elif isinstance(event, ev.Crashed):
            changes.put(
                "crash", self.name, n, event.at, self.project, self.session, event.what, event.error[:MAX_MESSAGE_CHARS]
            )

    def _charged(self, event: ev.Charged, changes: ReadModelBatch) -> None:
        """Add a cost that became known later to the last attempt, wherever that is counted."""
        if self.last_attempt is None:
            return
        dollars, (row, bucket) = event.dollars, self.last_attempt
        row[_ATTEMPT_DOLLARS] += dollars
        self.own_dollars += dollars
        changes.put("attempt", *row)
        changes.charge(bucket, dollars, self.last_attempt_at)
        if self.effect_key is not None:
            changes.add("by_rung", self.effect_key, 0, 0, 0.0, dollars)
        self.rung_history.charge(dollars, changes)
        if self.end_key is not None:
            changes.add("by_end", self.end_key, 0, 0.0, dollars, 0, 0, 0, 0, 0)
        self._update_session(changes, event.at, dollars=dollars)

    def _count_effect(
        self, day: int, event: ev.AttemptFailed | ev.AttemptSucceeded, own: float, changes: ReadModelBatch
    ) -> None:
        """Count whether the attempt resolved the failure before it; a last turn does if a check accepts its result."""
        saved = int(isinstance(event, ev.AttemptSucceeded) and self.incident.status is ev.Status.RECOVERED)
        self.effect_key = None
        if self.last_rung and self.first_failure is not None:
            key = self.effect_key = (
                day,
                self.project,
                self.first_failure.kind.value,
                self.last_rung,
                self.prompt,
                self.model,
            )
            changes.add("by_rung", key, 1, saved, event.seconds, own)
            if self.last_fingerprint:
                remedy = (self.project, self.last_fingerprint, self.last_rung, self.prompt, self.model)
                changes.add("remedy", remedy, 1, saved, event.at, event.at if saved else 0.0)
        self.rung_history.record_attempt(event.seconds, event.dollars, changes)
        if self.model_change is not None:
            self.model_change[_RESTORED_AT - 1] += event.dollars
            changes.put("model_change", *self.model_change)

    def _decided(self, n: int, event: ev.Decided, changes: ReadModelBatch, model: str) -> None:
        decision = event.decision
        names = self.incident.terms.rungs
        name = names[decision.rung] if decision.rung < len(names) else str(decision.rung)
        kind = self.incident.failure.kind.value if self.incident.failure is not None else ""
        result = "asked" if isinstance(decision, ev.Ask) else "ended" if isinstance(decision, ev.Finish) else "open"
        self.rung_history.enter(n, decision.rung, name, kind, event.at, result, changes)
        if isinstance(decision, ev.Finish):
            return
        self.highest_rung = max(self.highest_rung, decision.rung)
        if isinstance(decision, ev.Ask):
            self.pending_question, self.asks = (n, event.at, decision), self.asks + 1
            self._put_ask(changes, "waiting", "", None)
            self._update_session(changes, event.at, status="waiting")
            return
        self.last_rung = name
        if isinstance(decision, ev.Repeat | ev.Change) and decision.wait > 0 and self.due_at is None:
            self.due_at = event.at + decision.wait
        if isinstance(decision, ev.HandOver):
            self.escalations += 1
            self.model_change = [
                self.name, n, event.at, self.session, self.project, model, decision.model or model, decision.agent,
                decision.reason, decision.estimate, 0.0, None,
            ]  # fmt: skip
            changes.put("model_change", *self.model_change)

    def _put_ask(self, changes: ReadModelBatch, state: str, answer: str, at: float | None) -> None:
        if self.pending_question is not None:
            n, asked_at, ask = self.pending_question
            options = json.dumps([list(option) for option in ask.options], ensure_ascii=False)
            changes.put(
                "ask", self.name, n, asked_at, self.project, self.session, ask.question, options, ask.estimate,
                ask.model, state, answer, at,
            )  # fmt: skip

    def _ended(
        self, at: float, changes: ReadModelBatch, result: str = "", *, attempts: int = 0, dollars: float = 0.0
    ) -> None:  # fmt: skip
        if self.ended_at is not None:  # a later event of an incident that has already ended
            if attempts:
                self._update_session(changes, at, attempts=attempts, dollars=dollars)
            return
        self.ended_at = at
        kind = self.first_failure.kind.value if self.first_failure is not None else ""
        took = at - self.failed_at if self.failed_at is not None else 0.0
        status = self.incident.status.value if self.incident.status is not None else ""
        origin = self.incident.first_request
        key = self.end_key = (
            int(at // DAY_SECONDS),
            self.project,
            origin.model if origin is not None else "",
            kind,
            status,
            self.last_rung if self.first_failure is not None else "",
        )
        changes.add(
            "by_end",
            key,
            1,
            took,
            self.own_dollars,
            int(self.asks > 0),
            self.asks,
            int(self.escalations > 0),
            self.escalations,
            int(self.asks + self.orders > 0),
        )
        self.rung_history.end(at, result, changes)
        self._put_ask(changes, "over", "", None)
        self._update_session(changes, at, status=status, attempts=attempts, dollars=dollars)

    def _update_session(
        self, changes: ReadModelBatch, at: float, *, status: str = "", kind: str = "", message: str = "", incidents: int = 0,
        attempts: int = 0, failures: int = 0, dollars: float = 0.0,
    ) -> None:  # fmt: skip
        if self.session:
            changes.session(
                self.session, self.project, self.agent, self.model, "", status, kind, message, at, at, incidents,
                attempts, failures, dollars,
            )  # fmt: skip

    # -- derived values -------------------------------------------------------------------------------

    @property
    def project(self) -> str:
        """Project of the incident."""
        return self.incident.terms.project

    @property
    def session(self) -> str:
        """Agent session of the incident."""
        return self.incident.terms.session

    @property
    def model(self) -> str:
        """Current model."""
        return self.incident.request.model if self.incident.request is not None else ""

    @property
    def agent(self) -> str:
        """Current agent."""
        return self.incident.request.agent if self.incident.request is not None else ""

    def _row(self) -> tuple[Any, ...]:
        incident, first, names = self.incident, self.first_failure, self.incident.terms.rungs
        origin = incident.first_request
        return (
            self.name, self.project, self.session, self.agent, incident.terms.ladder, incident.terms.policy, incident.parent,
            self.digest, self.model, origin.model if origin is not None else "", incident.opened_at, self.ended_at,
            incident.status.value if incident.status is not None else "open", incident.reason, incident.attempts,
            self.failures, incident.dollars, self.own_dollars,
            "" if self.highest_rung < 0 else names[self.highest_rung] if self.highest_rung < len(names) else str(self.highest_rung),
            self.last_rung, self.asks, self.escalations, self.pattern, first.kind.value if first is not None else "",
            self.fingerprint, first.message[:MAX_MESSAGE_CHARS] if first is not None else "", self.failed_at, self.due_at,
            self.touched_at, self.orders,
        )  # fmt: skip


def _tool(failure: Failure) -> str:
    """Return the name of the tool that failed; `tool` when only the phase is known."""
    return failure.evidence.tool[:MAX_TOOL_CHARS] or ("tool" if failure.evidence.phase is Phase.TOOL else "")


class SequencedEvent(NamedTuple):
    """Event with its incident and its position in it."""

    incident: str
    n: int
    event: ev.Event


def replay(
    events: Iterable[SequencedEvent],
    store_request: Callable[[Request, str, float, ReadModelBatch], object],
    earlier: Callable[[str, int], Iterable[SequencedEvent]] = lambda *_: (),
) -> ReadModelBatch:
    """Derive the read models from all events of the journal, in order.

    The projector of an ended incident is dropped. When more events of it follow, it is rebuilt from its first events,
    which `earlier(incident, count)` returns.
    """
    changes = ReadModelBatch()
    projectors: dict[str, IncidentProjector] = {}
    ended_counts: dict[str, int] = {}  # number of events of each ended incident
    for incident, n, event in events:
        projector = projectors.get(incident)
        if projector is None:
            projector = projectors[incident] = IncidentProjector(incident)
            if incident in ended_counts:
                own = changes.rows["incident"][(incident,)][_OWN_DOLLARS]
                before = earlier(incident, ended_counts[incident])
                projector = projectors[incident] = rebuild_projector(incident, before, own)
        ended = projector.apply(
            n, event, changes, lambda request, digest, at: store_request(request, digest, at, changes)
        )
        if ended and (outer := projectors.get(projector.incident.parent)) is not None:
            outer.nested_dollars += projector.incident.dollars
        if projector.ended_at is not None:
            ended_counts[incident] = projector.event_count
            projectors.pop(incident).put_row(changes)
    for projector in projectors.values():
        projector.put_row(changes)
    return changes


def rebuild_projector(incident: str, events: Iterable[SequencedEvent], own: float) -> IncidentProjector:
    """Rebuild a projector from stored events without changing any count; `own` is its stored own cost."""
    projector, discarded = IncidentProjector(incident), ReadModelBatch()
    for _, n, event in events:
        projector.apply(n, event, discarded, lambda *_: None)
    projector.own_dollars = own
    return projector
