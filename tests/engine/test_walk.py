"""Recovery of a loop that somebody else runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Kind
from rung.core.domain.request import Request
from rung.core.policy.budget import RetryBudget
from rung.engine.external_loop import ExternalRecovery, ExternalRetryBudget
from rung.engine.loop.process_state import RETRY_BUDGET
from rung.store import open_journal
from rung.testing import HttpError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OVERLOADED = HttpError(529, "overloaded")
IMPATIENT = rung.policy("call", patience=0)


def names(events: Sequence[ev.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


class Sink:
    """Keeps batches of events, or refuses them."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, int, list[str]]] = []
        self.broken = False

    def append(self, incident: str, first: int, events: Sequence[ev.Event], /) -> None:
        if self.broken:
            raise OSError("disk full")
        self.batches.append((incident, first, names(events)))


def test_it_says_what_the_ladder_says() -> None:
    """Overloads are retried as often as the ladder says, then the incident ends; a success in the end is a recovery."""
    recovery = ExternalRecovery(IMPATIENT, now=lambda: 0.0, jitter=lambda: 0.5)
    assert [type(recovery.failed(OVERLOADED)) for _ in range(4)] == [ev.Repeat, ev.Repeat, ev.Repeat, ev.Finish]
    assert recovery.incident.status == "failed"
    recovery = ExternalRecovery("call")
    recovery.failed(OVERLOADED)
    recovery.succeeded()
    assert recovery.incident.status == "recovered"


def test_its_limits_are_the_policys() -> None:
    """Past the policy's seconds nothing is repeated."""
    times = iter([0.0, 11.0])
    recovery = ExternalRecovery(rung.policy("call", seconds=10), now=lambda: next(times))
    assert isinstance(recovery.failed(OVERLOADED), ev.Finish)


def test_it_is_written_down(tmp_path: Path) -> None:
    """The journal has every report and decision, in that order."""
    with open_journal(str(tmp_path / "journal.db")) as journal:
        recovery = ExternalRecovery("call", journal=journal)
        recovery.failed(HttpError(401, "no"))
        assert names(journal.events(recovery.incident.id)) == ["Opened", "AttemptFailed", "Decided", "Closed"]


def test_the_shared_retry_budget_is_honoured() -> None:
    """Each scheduled retry is charged; without tokens the ladder climbs instead; a success gives a token back."""
    budget = RetryBudget(capacity=2 * RetryBudget.COST)
    shared = ExternalRetryBudget(budget)
    one, other = (ExternalRecovery(IMPATIENT, retry_budget=shared, jitter=lambda: 0.5) for _ in range(2))
    assert [type(each.failed(OVERLOADED)) for each in (one, other)] == [ev.Repeat, ev.Repeat]
    assert budget.tokens == 0
    refused = one.failed(OVERLOADED)
    assert isinstance(refused, ev.Finish)
    assert any(why.startswith("the shared retry budget is spent") for _, why in refused.skipped)
    other.succeeded()
    assert budget.tokens == budget.per_call


def test_the_budget_is_the_processs_own_unless_told_otherwise() -> None:
    """Without a budget of its own a recovery charges that of the process, which is given back here."""
    before = RETRY_BUDGET.tokens
    ExternalRecovery("call", jitter=lambda: 0.5).failed(OVERLOADED)
    spent = before - RETRY_BUDGET.tokens
    ExternalRecovery("call", retry_budget=None, jitter=lambda: 0.5).failed(OVERLOADED)
    assert before - RETRY_BUDGET.tokens == spent == RETRY_BUDGET.COST
    RETRY_BUDGET.credit(spent)


def test_a_charge_is_returned_after_a_while() -> None:
    """A loop that never reports a success gets its tokens back when the charge is due, and not before."""
    budget, now = RetryBudget(capacity=RetryBudget.COST), [0.0]
    shared = ExternalRetryBudget(budget, seconds=600, clock=lambda: now[0])

    def decision() -> type:
        return type(ExternalRecovery(IMPATIENT, retry_budget=shared, jitter=lambda: 0.5).failed(OVERLOADED))

    assert [decision(), decision()] == [ev.Repeat, ev.Finish]
    now[0] = 599.0
    assert decision() is ev.Finish
    now[0] = 600.0
    assert [decision(), decision()] == [ev.Repeat, ev.Finish]


def test_a_persisted_incident_goes_on() -> None:
    """Loaded with its events an incident keeps its id, its tries and its numbering; no second one is opened."""
    sink: Any = Sink()
    first = ExternalRecovery(IMPATIENT, jitter=lambda: 0.5)
    first.failed(OVERLOADED)
    again = ExternalRecovery(IMPATIENT, events=first.events, journal=sink, jitter=lambda: 0.5)
    assert again.incident == first.incident
    assert [type(again.failed(OVERLOADED)) for _ in range(3)] == [ev.Repeat, ev.Repeat, ev.Finish]
    assert sink.batches[0] == (first.incident.id, 3, ["AttemptFailed", "Decided"])
    assert sink.batches[-1][1:] == (7, ["AttemptFailed", "Decided", "Closed"])


def test_what_cannot_be_written_has_not_happened() -> None:
    """When the journal raises, the error reaches the caller and the incident is as it was."""
    sink: Any = Sink()
    recovery = ExternalRecovery("call", journal=sink, jitter=lambda: 0.5)
    sink.broken = True
    with pytest.raises(OSError, match="disk full"):
        recovery.failed(OVERLOADED)
    assert (recovery.incident.attempts, recovery.incident.decision, names(recovery.events)) == (0, None, ["Opened"])


def test_a_loop_that_goes_on_after_the_last_rung() -> None:
    """With close=False a Finish is told and the incident stays open."""
    recovery = ExternalRecovery("call")
    assert isinstance(recovery.failed(HttpError(401, "no"), close=False), ev.Finish)
    assert not recovery.incident.status
    recovery.close(ev.Status.PARTIAL, "given up")
    assert recovery.incident.reason == "given up"


def test_the_text_of_a_rung_and_its_request() -> None:
    """The request of a changing rung is recorded once, and its text is what the model reads; a retry has neither."""
    recovery = ExternalRecovery("task", request=Request(prompt="count the files"), jitter=lambda: 0.5)
    decision = recovery.failed(Evidence(text="no such file: notes.txt", finding=Kind.TOOL_ERROR))
    text = recovery.change_request(decision)
    assert "notes.txt" in text
    assert names(recovery.events)[-1] == "Changed"
    assert recovery.incident.request is not None
    assert recovery.incident.request.recovery == text
    assert recovery.change_request(recovery.failed(OVERLOADED)) == ""
    assert names(recovery.events)[-1] == "Decided"


def test_the_outcome_of_a_loop() -> None:
    """Finished steps and the reason are in the outcome."""
    recovery = ExternalRecovery("task", request=Request(prompt="count the files"), session="s", project="p")
    recovery.record_failure(OVERLOADED)
    recovery.record_decision(ev.Repeat(0, 1.0, "overloaded"))
    recovery.step_completed("read the index")
    recovery.close(ev.Status.PARTIAL, "no time left")
    outcome = recovery.outcome()
    assert (outcome.status, outcome.reason, outcome.steps) == (
        "partial",
        "no time left; last error: overloaded: overloaded",
        ("read the index",),
    )
    assert outcome.attempts == 1
    assert (recovery.incident.terms.session, recovery.incident.terms.project) == ("s", "p")


def test_a_rung_that_changes_nothing_the_driver_can_see() -> None:
    """Where the caller holds the conversation, compaction changes no request here: nothing is recorded, advice is given."""
    recovery = ExternalRecovery("call", request=Request(prompt="count the files"), retry_budget=None)
    decision = recovery.failed(Evidence(text="prompt is too long", finding=Kind.CONTEXT_LIMIT))
    assert isinstance(decision, ev.Change)
    assert "prompt is too long" in recovery.change_request(decision)
    assert names(recovery.events)[-1] == "Decided"
    recovery.succeeded()
    assert recovery.incident.status == "recovered"
