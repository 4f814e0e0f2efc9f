"""Tries of rungs in recorded incidents: which failure each one answered, whether it fixed it, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.failures import PROCESS_DEATH_RULE
from rung.core.domain.ladder import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Failure, Kind


class RungTry(NamedTuple):
    """One try of a rung: the attempt that followed its decision, with the wait before it.

    `number` counts the tries of the rung: retries since the last climb, those of other rungs in the incident.
    """

    kind: Kind
    rung: str
    number: int
    succeeded: bool
    seconds: float
    dollars: float


class TriedIncident(NamedTuple):
    """A recorded incident with the tries of its rungs. `model` is that of its first request."""

    id: str
    project: str
    model: str
    ladder: str
    rungs: tuple[str, ...]
    recovered: bool
    tries: tuple[RungTry, ...]


def tries_of(events: Sequence[ev.Event]) -> TriedIncident:
    """Return the tries of a recorded incident.

    Not counted: waits for a service or a limit, another key of the same upstream, the forced last turn, and an attempt whose
    process died.
    """
    opened = events[0]
    assert isinstance(opened, ev.Opened)  # noqa: S101  # the first event of every incident
    fold = _TryFold(opened.terms.rungs)
    for event in events:
        fold.apply(event)
    model = opened.request.model if opened.request is not None else ""
    terms = opened.terms
    recovered = any(one.succeeded for one in fold.tries)
    return TriedIncident(opened.id, terms.project, model, terms.ladder, terms.rungs, recovered, tuple(fold.tries))


class _TryFold:
    """State of the fold: the last failure, and the decision whose attempt is awaited."""

    def __init__(self, rungs: tuple[str, ...]) -> None:
        self.rungs = rungs
        self.tries: list[RungTry] = []
        self.failure: Failure | None = None
        self.decision: ev.Decision | None = None
        self.kind: Kind | None = None  # of the failure that the decision answers
        self.numbers: dict[int, int] = {}
        self.retries: dict[int, int] = {}

    def apply(self, event: ev.Event) -> None:
        if isinstance(event, ev.Decided):
            if self.failure is None or self.failure.rule != PROCESS_DEATH_RULE:
                self.kind = self.failure.kind if self.failure is not None else None
                self.decision = event.decision if _is_try(event.decision) else None
        elif isinstance(event, ev.AttemptFailed):
            self.failure = event.failure
            if event.made and event.failure.rule != PROCESS_DEATH_RULE:
                self._count(event, succeeded=False)
        elif isinstance(event, ev.AttemptSucceeded):
            self._count(event, succeeded=True)

    def _count(self, event: ev.AttemptFailed | ev.AttemptSucceeded, *, succeeded: bool) -> None:
        decision, self.decision = self.decision, None
        if decision is None or self.kind is None or decision.rung >= len(self.rungs):
            return
        if isinstance(decision, ev.Repeat):
            numbers = self.retries
        else:
            numbers, self.retries = self.numbers, {}
        numbers[decision.rung] = number = numbers.get(decision.rung, 0) + 1
        seconds = getattr(decision, "wait", 0.0) + event.seconds
        name = self.rungs[decision.rung]
        self.tries.append(RungTry(self.kind, name, number, succeeded, seconds, event.dollars))


def _is_try(decision: ev.Decision) -> bool:
    """Whether the attempt after the decision is a try of its rung."""
    if isinstance(decision, ev.Repeat):
        return decision.until is None and not decision.other_key
    if isinstance(decision, ev.Change):
        return decision.action is not Action.FORCE_DONE
    return isinstance(decision, ev.HandOver)
