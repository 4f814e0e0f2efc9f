"""Remedies: the journal suggests a rung only after repeated success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from rung.store.queries.remedies import Remedy, suggest_rung, what_worked
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOST = rung.AttemptError("no such file: notes.txt", finding="not_found")
OTHER = rung.AttemptError("the tests fail", finding="test_failure")
BUSY = HttpError(529, "overloaded")


class Remembering(Journal):
    """Journal whose suggestions the engine can request."""

    hint = suggest_rung


class Shelf:
    """Journal with recoveries recorded one after the other."""

    def __init__(self, path: Path) -> None:
        self.journal = Remembering(SqliteBackend(path), project="site")
        self.clock = FakeClock()

    def recover(self, *script: Any, **settings: Any) -> rung.Outcome[Any]:
        self.clock.advance(100)
        policy = rung.policy("task", report="", **{"models": ["small", "large"], **settings})
        outcome = rung.recover_sync(
            Script(*script),
            rung.Request(prompt="do it", model="small"),
            policy=policy,
            journal=self.journal,
            clock=self.clock,
            jitter=lambda: 0.5,
            retry_budget=None,
            breakers=rung.BreakerRegistry(),
        )
        assert self.journal.flush()
        return outcome

    def worked(self, error: Exception = LOST, project: str = "site") -> list[Remedy]:
        return what_worked(self.journal, project, classify(error).fingerprint)

    def hint(self, error: Exception = LOST, project: str = "site") -> str | None:
        return suggest_rung(self.journal, project, classify(error))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "journal.db")
    yield shelf
    shelf.journal.close()


def test_nothing_is_remembered_of_what_was_never_seen(shelf: Shelf) -> None:
    """A new failure, or one seen once, has no suggestion."""
    assert shelf.worked() == []
    assert shelf.hint() is None
    shelf.recover(LOST, "done")
    assert shelf.hint() is None


def test_what_was_tried_and_what_worked(shelf: Shelf) -> None:
    """Each remedy lists its prompt, model, tries and successes."""
    shelf.recover(LOST, "done")
    shelf.recover(LOST, LOST, "done")
    shelf.recover(LOST, LOST, LOST, LOST, "done")
    best, *rest = shelf.worked()
    assert best[:5] == ("nudge", "nudge.path", "small", 6, 2)
    assert [one[:5] for one in rest] == [("replan", "replan.approach", "small", 1, 1)]
    assert best.worked_at is not None
    assert best.worked_at < best.tried_at


def test_a_remedy_is_for_the_failure_right_before_it(shelf: Shelf) -> None:
    """A rung that resolved a later failure of the same incident does not count for this one."""
    shelf.recover(LOST, OTHER, "done")
    assert [one[:5] for one in shelf.worked(LOST)] == [("nudge", "nudge.path", "small", 1, 0)]
    assert shelf.worked(LOST)[0].worked_at is None
    assert [one[:5] for one in shelf.worked(OTHER)] == [("replan", "replan.test", "small", 1, 1)]


def test_a_last_turn_is_no_cure(shelf: Shelf) -> None:
    """A forced last turn does not count as a remedy."""
    for _ in range(3):
        looped = rung.AttemptError("again", finding="loop_detected", repeats=9)
        assert shelf.recover(looped, "what I did").status == "partial"
    (last,) = shelf.worked(looped)
    assert (last.rung, last.tried, last.worked) == ("force-done", 3, 0)
    assert shelf.hint(looped) is None


def test_twice_and_more_often_than_not(shelf: Shelf) -> None:
    """A rung is suggested after two successes and a majority of its tries, over all prompts and models."""
    shelf.recover(LOST, LOST, LOST, LOST, "done")
    shelf.recover(LOST, LOST, LOST, LOST, "done")
    assert shelf.hint() == "replan"
    shelf.recover(LOST, LOST, LOST, LOST, LOST, "done")  # replan failed, the model change succeeded
    assert shelf.hint() is None  # the model change worked last, but only once
    shelf.recover(LOST, LOST, LOST, LOST, LOST, "done")
    assert shelf.hint() == "fallback"
    for _ in range(2):
        shelf.recover(LOST, LOST, LOST, LOST, LOST, LOST, "done")  # now it failed as well
    assert shelf.hint() is None


def test_each_project_remembers_for_itself(shelf: Shelf) -> None:
    """Remedies of one project are not suggested in another."""
    for _ in range(2):
        shelf.recover(LOST, "done")
    assert shelf.hint(project="site") == "nudge"
    assert shelf.hint(project="other") is None
    assert shelf.worked(project="other") == []


def test_a_recovery_learns_from_the_ones_before(shelf: Shelf) -> None:
    """With `learn`, the first rung is the one that worked before; without it, no suggestion is requested."""
    for _ in range(2):
        shelf.recover(LOST, LOST, LOST, LOST, "done")
    plain = shelf.recover(LOST, "done")
    assert not any(isinstance(event, ev.Hinted) for event in plain.events)
    for _ in range(2):
        shelf.recover(BUSY, BUSY, BUSY, BUSY, "done")
    learned = shelf.recover(BUSY, "done", learn=True)
    (hinted,) = [event for event in learned.events if isinstance(event, ev.Hinted)]
    (decided,) = [event.decision for event in learned.events if isinstance(event, ev.Decided)]
    assert (hinted.rung, hinted.reason) == (3, "fallback worked last time")
    assert isinstance(decided, ev.HandOver)
    assert decided.reason == "overloaded: fallback worked last time"
    assert shelf.journal.events(learned.id) == list(learned.events)


def test_it_reads_off_what_can_be_made_again(shelf: Shelf) -> None:
    """A rebuild yields the same remedies."""
    for _ in range(2):
        shelf.recover(LOST, LOST, "done")
    before = shelf.worked()
    shelf.journal.rebuild()
    assert shelf.worked() == before
