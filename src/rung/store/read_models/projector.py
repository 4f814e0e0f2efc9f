"""One incident as it unfolds, and what each of its events changes in the tables that are read off them."""

from __future__ import annotations

import json
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.failures import Phase, short_hash
from rung.core.domain.incident import Incident
from rung.store.read_models.batch import DAY, HOUR, MESSAGE, ROWS, AttemptBucket, ReadModelBatch
from rung.store.read_models.prompt_templates import pattern
from rung.store.read_models.rung_history import RungHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rung.core.domain.failures import Failure
    from rung.core.domain.request import Request

TOOL: Final = 100  # characters of a tool's name
_OWN: Final = ROWS["incident"].index("own_dollars")
_RESTORED: Final = ROWS["model_change"].index("restored_at")


class IncidentProjector:
    """What a row about an incident needs that a single event does not say.

    An attempt that was refused (the circuit was open, the time was up) is a failure, but no attempt: it leads to a
    decision and is counted nowhere else.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.incident = Incident()
        self.told = 0  # events
        self.failures = 0
        self.first: Failure | None = None
        self.mark = ""  # its fingerprint, which is not made for every row again
        self.tried_on = ""  # the fingerprint of the failure that the next attempt is to mend
        self.digest = ""  # of the first request: the same
        self.pattern = ""  # of its prompt
        self.failed_at: float | None = None
        self.touched_at = 0.0
        self.ended_at: float | None = None
        self.due_at: float | None = None
        self.last_rung = ""
        self.highest = -1
        self.levels = RungHistory(name)
        self.prompt = ""
        self.asked: tuple[int, float, ev.Ask] | None = None  # what waits for an answer
        self.asks = 0
        self.handed: list[Any] | None = None  # the row of the hand-over in force
        self.escalations = 0
        self.own = 0.0  # dollars, without what recoveries within its attempts spent
        self.inner = 0.0  # dollars that recoveries within the running attempt have spent
        self.tried_at = 0.0  # when the last attempt ended

    def take(
        self, n: int, event: ev.Event, changes: ReadModelBatch, keep: Callable[[Request, str, float], object]
    ) -> bool:
        """One more event: fold it, and say what it changes; True when it was the end. `keep` stores a request."""
        before, over = self.incident.request, self.ended_at is not None
        self.due_at = None
        self.incident.fold(event)
        self.told += 1
        self.touched_at = max(self.touched_at, event.at)
        if isinstance(event, ev.Opened):
            self._opened(event, changes, keep)
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
            keep(event.request, event.digest, event.at)
        elif isinstance(event, ev.Skipped):
            self.levels.skip(event.rung, event.at, changes)
        elif isinstance(event, ev.Answered) and self.asked is not None:
            self._put_ask(changes, "answered", event.option, event.at)
            self._about_session(changes, event.at, status="recovering")
            self.asked = None
        elif isinstance(event, ev.ModelRestored) and self.handed is not None:
            self.handed[_RESTORED] = event.at
            changes.put("model_change", *self.handed)
            self.handed = None
        elif isinstance(event, ev.Crashed):
            changes.put("crash", self.name, n, event.at, self.project, self.session, event.what, event.error[:MESSAGE])
        elif isinstance(event, ev.Closed | ev.Cancelled):
            self._ended(event.at, changes)
        return not over and self.ended_at is not None

    def put_row(self, changes: ReadModelBatch) -> None:
        """The row about it, as it is now: once for all events that are told together."""
        changes.put("incident", *self._row())

    # -- one kind of event each -----------------------------------------------------------------------

    def _opened(self, event: ev.Opened, changes: ReadModelBatch, keep: Callable[[Request, str, float], object]) -> None:
        self._about_session(changes, event.at, status="working", incidents=1)
        changes.add("project", (self.project,), 1, 0, 0, 0.0, event.at, event.at)
        if event.request is not None:
            (self.digest,) = self.incident.digests
            if text := pattern(event.request):
                self.pattern = short_hash(text, 6)
                changes.put("pattern", self.pattern, text, event.at)
            keep(event.request, self.digest, event.at)

    def _failed(self, n: int, event: ev.AttemptFailed, changes: ReadModelBatch) -> None:
        failure = event.failure
        mark = failure.fingerprint
        if self.first is None:
            self.first, self.mark, self.failed_at = failure, mark, event.at
        own, message = 0.0, failure.message[:MESSAGE]
        if event.made:
            self.failures += 1
            own = self._attempt(n, event, changes, failure, mark)
            key = (self.project, mark)
            changes.add("by_message", (int(event.at // DAY), *key), 1)
            changes.group(key, failure.kind.value, message, self.name, event.at, event.at, 1)
            self.tried_on = mark
        made = int(event.made)
        self._about_session(
            changes, event.at, status="recovering", kind=failure.kind.value, message=message, attempts=made,
            failures=made, dollars=own,
        )  # fmt: skip

    def _attempt(
        self, n: int, event: ev.AttemptFailed | ev.AttemptSucceeded, changes: ReadModelBatch, failure: Failure | None, mark: str
    ) -> float:  # fmt: skip
        """An attempt that was made: its row, and everywhere it counts but for the session. What it spent itself."""
        at, seconds = event.at, event.seconds
        own, self.inner = max(0.0, event.dollars - self.inner), 0.0
        self.tried_at = at
        self.own += own
        kind, rule, phase, tool, message = "", "", "", "", ""
        if failure is not None:
            kind, rule, phase = failure.kind.value, failure.rule, failure.evidence.phase.value
            tool, message = _tool(failure), failure.message[:MESSAGE]
        terms, model = self.incident.terms, self.model
        changes.put(
            "attempt", self.name, n, self.incident.attempts, at, seconds, own, terms.project, terms.session,
            model, self.agent, self.last_rung, self.prompt, int(failure is None), kind, rule, phase, tool, mark, message,
        )  # fmt: skip
        day, bucket = int(at // DAY), round(4 * log2(max(seconds * 1_000, 1)))
        alike = AttemptBucket(
            day, int(at // HOUR), terms.project, terms.session, model, tool, kind, self.pattern, bucket, failure is not None
        )  # fmt: skip
        changes.attempt(alike, seconds, own, at)
        self._helped(day, event, own, changes)
        return own

    def _helped(
        self, day: int, event: ev.AttemptFailed | ev.AttemptSucceeded, own: float, changes: ReadModelBatch
    ) -> None:
        """What it did for the failure before it. A forced last turn looks good, and has mended nothing."""
        saved = int(isinstance(event, ev.AttemptSucceeded) and self.incident.status is ev.Status.RECOVERED)
        if self.last_rung and self.first is not None:
            key = (day, self.project, self.first.kind.value, self.last_rung, self.prompt, self.model)
            changes.add("by_rung", key, 1, saved, event.seconds, own)
            if self.tried_on:
                remedy = (self.project, self.tried_on, self.last_rung, self.prompt, self.model)
                changes.add("remedy", remedy, 1, saved, event.at, event.at if saved else 0.0)
        self.levels.tried(event.seconds, event.dollars, changes)
        if self.handed is not None:
            self.handed[_RESTORED - 1] += event.dollars
            changes.put("model_change", *self.handed)

    def _decided(self, n: int, event: ev.Decided, changes: ReadModelBatch, model: str) -> None:
        decision = event.decision
        names = self.incident.terms.rungs
        name = names[decision.rung] if decision.rung < len(names) else str(decision.rung)
        kind = self.incident.failure.kind.value if self.incident.failure is not None else ""
        result = "asked" if isinstance(decision, ev.Ask) else "ended" if isinstance(decision, ev.Finish) else "open"
        self.levels.enter(n, decision.rung, name, kind, event.at, result, changes)
        if isinstance(decision, ev.Finish):
            return
        self.highest = max(self.highest, decision.rung)
        if isinstance(decision, ev.Ask):
            self.asked, self.asks = (n, event.at, decision), self.asks + 1
            self._put_ask(changes, "waiting", "", None)
            self._about_session(changes, event.at, status="waiting")
            return
        self.last_rung = name
        if isinstance(decision, ev.Repeat | ev.Change) and decision.wait > 0:
            self.due_at = event.at + decision.wait
        if isinstance(decision, ev.HandOver):
            self.escalations += 1
            self.handed = [
                self.name, n, event.at, self.session, self.project, model, decision.model or model, decision.agent,
                decision.reason, decision.estimate, 0.0, None,
            ]  # fmt: skip
            changes.put("model_change", *self.handed)

    def _put_ask(self, changes: ReadModelBatch, state: str, answer: str, at: float | None) -> None:
        if self.asked is not None:
            n, asked_at, ask = self.asked
            options = json.dumps([list(option) for option in ask.options], ensure_ascii=False)
            changes.put(
                "ask", self.name, n, asked_at, self.project, self.session, ask.question, options, ask.estimate,
                ask.model, state, answer, at,
            )  # fmt: skip

    def _ended(
        self, at: float, changes: ReadModelBatch, result: str = "", *, attempts: int = 0, dollars: float = 0.0
    ) -> None:  # fmt: skip
        if self.ended_at is not None:  # something more was told of it: it ended once
            if attempts:
                self._about_session(changes, at, attempts=attempts, dollars=dollars)
            return
        self.ended_at = at
        kind = self.first.kind.value if self.first is not None else ""
        took = at - self.failed_at if self.failed_at is not None else 0.0
        status = self.incident.status.value if self.incident.status is not None else ""
        origin = self.incident.first_request
        key = (
            int(at // DAY),
            self.project,
            origin.model if origin is not None else "",
            kind,
            status,
            self.last_rung if self.first is not None else "",
        )
        changes.add(
            "by_end", key, 1, took, self.own, int(self.asks > 0), self.asks, int(self.escalations > 0), self.escalations
        )
        self.levels.end(at, result, changes)
        self._put_ask(changes, "over", "", None)
        self._about_session(changes, at, status=status, attempts=attempts, dollars=dollars)

    def _about_session(
        self, changes: ReadModelBatch, at: float, *, status: str = "", kind: str = "", message: str = "", incidents: int = 0,
        attempts: int = 0, failures: int = 0, dollars: float = 0.0,
    ) -> None:  # fmt: skip
        if self.session:
            changes.session(
                self.session, self.project, self.agent, self.model, "", status, kind, message, at, at, incidents,
                attempts, failures, dollars,
            )  # fmt: skip

    # -- what it is about -----------------------------------------------------------------------------

    @property
    def project(self) -> str:
        """Whose it is."""
        return self.incident.terms.project

    @property
    def session(self) -> str:
        """In which session of an agent."""
        return self.incident.terms.session

    @property
    def model(self) -> str:
        """The model at work."""
        return self.incident.request.model if self.incident.request is not None else ""

    @property
    def agent(self) -> str:
        """The agent at work."""
        return self.incident.request.agent if self.incident.request is not None else ""

    def _row(self) -> tuple[Any, ...]:
        incident, first, names = self.incident, self.first, self.incident.terms.rungs
        origin = incident.first_request
        return (
            self.name, self.project, self.session, self.agent, incident.terms.ladder, incident.terms.policy, incident.parent,
            self.digest, self.model, origin.model if origin is not None else "", incident.opened_at, self.ended_at,
            incident.status.value if incident.status is not None else "open", incident.reason, incident.attempts,
            self.failures, incident.dollars, self.own,
            "" if self.highest < 0 else names[self.highest] if self.highest < len(names) else str(self.highest),
            self.last_rung, self.asks, self.escalations, self.pattern, first.kind.value if first is not None else "",
            self.mark, first.message[:MESSAGE] if first is not None else "", self.failed_at, self.due_at,
            self.touched_at,
        )  # fmt: skip


def _tool(failure: Failure) -> str:
    """The tool it failed in: its name, or that it was one."""
    return failure.evidence.tool[:TOOL] or ("tool" if failure.evidence.phase is Phase.TOOL else "")


class SequencedEvent(NamedTuple):
    """An event with its place."""

    incident: str
    n: int
    event: ev.Event


def replay(
    events: Iterable[SequencedEvent],
    keep: Callable[[Request, str, float, ReadModelBatch], object],
    earlier: Callable[[str, int], Iterable[SequencedEvent]] = lambda *_: (),
) -> ReadModelBatch:
    """All that can be read off these events, which are all there are, in their order.

    A story is put away when it has ended; `earlier` has the first so many of its events, when more is told of it.
    """
    changes = ReadModelBatch()
    stories: dict[str, IncidentProjector] = {}
    over: dict[str, int] = {}  # events of those that have ended
    for incident, n, event in events:
        story = stories.get(incident)
        if story is None:
            story = stories[incident] = IncidentProjector(incident)
            if incident in over:
                own = changes.rows["incident"][(incident,)][_OWN]
                story = stories[incident] = again(incident, earlier(incident, over[incident]), own)
        ended = story.take(n, event, changes, lambda request, digest, at: keep(request, digest, at, changes))
        if ended and (outer := stories.get(story.incident.parent)) is not None:
            outer.inner += story.incident.dollars
        if story.ended_at is not None:
            over[incident] = story.told
            stories.pop(incident).put_row(changes)
    for story in stories.values():
        story.put_row(changes)
    return changes


def again(incident: str, events: Iterable[SequencedEvent], own: float) -> IncidentProjector:
    """A story told before, told again: nothing is counted, and what it spent itself is known."""
    story, nothing = IncidentProjector(incident), ReadModelBatch()
    for _, n, event in events:
        story.take(n, event, nothing, lambda *_: None)
    story.own = own
    return story
