"""An order that comes when a recovery ends is carried out, or answered with "too late"."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import rung
from rung.core.domain import events as ev
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.store.orders import TOO_LATE, order_recovery
from rung.testing import HttpError

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

BUSY = HttpError(503, "busy")
RETRY = Intervention(InterventionType.RETRY, "ada", "large")
TWICE = rung.policy("call", retries=1, patience=0, attempts=2, backoff={"base": 0.01, "cap": 0.01})


class Ordering:
    """Attempts during which a person gives an order: in the attempt of this number."""

    def __init__(self, journal: Journal, order: Intervention, *results: Any, at: int = 1) -> None:
        self.journal, self.order, self.results, self.at = journal, order, list(results), at
        self.models: list[str] = []
        self.accepted: bool | None = None

    def __call__(self, request: rung.Request) -> str:
        self.models.append(request.model)
        if len(self.models) == self.at:
            ((incident,),) = self.journal.read("SELECT id FROM incident")
            self.accepted = order_recovery(self.journal, incident, self.order, time.time())
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return str(result)


def recovered(attempt: Ordering) -> Any:
    request = rung.Request(prompt="x", model="small")
    outcome = rung.recover_sync(attempt, request, policy=TWICE, journal=attempt.journal)
    assert attempt.journal.flush()
    return outcome


def test_an_order_during_the_last_attempt_is_carried_out(journal: Journal) -> None:
    """The last attempt fails while the order is in the journal: the recovery makes the ordered attempt before it ends."""
    attempt = Ordering(journal, RETRY, BUSY, BUSY, "done", at=2)
    outcome = recovered(attempt)
    assert (outcome.status, attempt.accepted, attempt.models) == ("recovered", True, ["small", "small", "large"])
    assert [event.by for event in journal.events(outcome.id) if isinstance(event, ev.Ordered)] == ["ada"]
    assert journal.runs.received(f"order/{outcome.id}") is None
    assert journal.runs.received(f"result/{outcome.id}") is None


def test_an_order_is_carried_out_once(journal: Journal) -> None:
    """The ordered attempt fails as well: the same order is not taken again, and the incident ends."""
    attempt = Ordering(journal, RETRY, BUSY, BUSY, BUSY, "never", at=2)
    outcome = recovered(attempt)
    assert (outcome.status, attempt.models) == ("failed", ["small", "small", "large"])
    assert journal.runs.received(f"result/{outcome.id}") is None


def test_a_cancellation_during_the_last_attempt(journal: Journal) -> None:
    """An order to cancel ends the incident as the person's, and is no order that came too late."""
    outcome = recovered(Ordering(journal, Intervention(InterventionType.CANCEL, "ada"), BUSY, BUSY, at=2))
    assert outcome.status == "partial"
    assert outcome.reason.startswith("stopped by ada")
    assert journal.runs.received(f"result/{outcome.id}") is None


def test_an_order_that_success_overtakes_is_answered(journal: Journal) -> None:
    """The attempt in progress succeeds: the order is removed, and its answer is that it was too late."""
    attempt = Ordering(journal, RETRY, BUSY, "done", at=2)
    outcome = recovered(attempt)
    assert (outcome.status, attempt.accepted, attempt.models) == ("recovered", True, ["small", "small"])
    assert journal.runs.received(f"order/{outcome.id}") is None
    assert journal.runs.received(f"result/{outcome.id}") == {"ok": False, "text": TOO_LATE}


def test_an_ended_incident_accepts_no_order(journal: Journal) -> None:
    """An incident that has ended accepts no order, so that the person can be told, and none is left behind."""
    attempt = Ordering(journal, RETRY, BUSY, "done", at=9)
    outcome = recovered(attempt)
    assert not order_recovery(journal, outcome.id, RETRY, time.time())
    assert journal.runs.received(f"order/{outcome.id}") is None
    assert not order_recovery(journal, "unknown", RETRY, time.time())
