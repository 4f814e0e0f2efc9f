"""Counts of rungs for `learn`: what the journal has recorded of a project and ladder, kept for some minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.recovery.rung_tries import tries_of
from rung.store import open_journal
from rung.store.project_scope import ProjectJournal
from rung.store.queries.rung_counts import MAX_CACHED, REFRESH_SECONDS, rung_counts
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal

BUSY = HttpError(529, "overloaded")
GAVE_UP = rung.AttemptError("cannot do it", finding="gave_up")
MONTH = 2_592_000.0


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    """Journal in a store of either kind."""
    with open_journal(url, project="site") as journal:
        yield journal


def recover(journal: Any, *script: Any, clock: FakeClock | None = None, ladder: str = "task", **settings: Any) -> Any:
    """Record a recovery; return its outcome."""
    policy = rung.policy(ladder, report="", models=["small", "large"], **settings)
    outcome = rung.recover_sync(
        Script(*script),
        rung.Request(prompt="do it", model="small"),
        policy=policy,
        journal=journal,
        clock=clock or FakeClock(1_000.0),
        jitter=lambda: 0.0,
        retry_budget=None,
        breakers=rung.BreakerRegistry(),
    )
    journal.flush()
    return outcome


def test_the_counts_are_those_of_the_events(journal: Journal) -> None:
    """Kind, rung, number and success are those that the events of the incidents tell."""
    scripts = [(GAVE_UP, "done"), (GAVE_UP, GAVE_UP, "done"), (GAVE_UP, BUSY, "done"), (GAVE_UP,) * 9, ("done",)]
    outcomes = [recover(journal, *script) for script in scripts]
    tries = [one for outcome in outcomes for one in tries_of(outcome.events).tries]
    expected: dict[tuple[str, str, int], list[int]] = {}
    for one in tries:
        cell = expected.setdefault((one.kind.value, one.rung, one.number), [0, 0])
        cell[0] += 1
        cell[1] += one.succeeded
    found = {
        (each.kind, each.rung, each.number): [each.tried, each.succeeded]
        for each in rung_counts(journal, "site", "task", 0.0)
    }
    forced = {key for key in found if key[1] == "force-done"}
    assert {key: value for key, value in found.items() if key not in forced} == expected
    assert [found[key] for key in forced] == [[1, 0]]  # a forced last turn is counted as no success
    assert {each.model for each in rung_counts(journal, "site", "task", 0.0)} == {"small"}


def test_project_ladder_and_time(journal: Journal) -> None:
    """Only incidents of the project, on the ladder, since the time."""
    recover(journal, GAVE_UP, "done")
    assert rung_counts(journal, "site", "task", 999.0)
    assert rung_counts(journal, "site", "task", 1_001.0) == []
    assert rung_counts(journal, "shop", "task", 0.0) == []
    assert rung_counts(journal, "site", "model", 0.0) == []


def test_counts_are_kept_for_some_minutes(journal: Journal) -> None:
    """A second lookup reads nothing new until the counts are too old; a clock that was set back reads again."""
    recover(journal, GAVE_UP, "done")
    first = journal.rung_counts("site", "task", MONTH, 2_000.0)
    recover(journal, GAVE_UP, "done")
    assert journal.rung_counts("site", "task", MONTH, 2_000.0 + REFRESH_SECONDS - 1) is first
    assert journal.rung_counts("site", "task", MONTH, 2_000.0 + REFRESH_SECONDS)[0].tried == 2
    assert journal.rung_counts("site", "task", MONTH, 1_999.0) is not first


def test_few_counts_are_kept(journal: Journal) -> None:
    """A process with many projects does not keep the counts of all."""
    first = journal.rung_counts("site", "task", MONTH, 0.0)
    for n in range(MAX_CACHED):
        journal.rung_counts(f"project {n}", "task", MONTH, 0.0)
    assert journal.rung_counts("site", "task", MONTH, 0.0) is not first


def test_a_journal_teaches_the_recoveries_after_it(journal: Journal) -> None:
    """What failed often enough is left out by the next recovery, of a plain journal and one scoped to the project."""
    clock = FakeClock(1_000.0)
    for n in range(45):
        recover(journal, *[GAVE_UP] * (4 if n % 3 else 5), "done", clock=clock)
        clock.advance(10)
    clock.advance(REFRESH_SECONDS)
    learn = {"enabled": True, "explore": 0.0}
    plain = recover(journal, GAVE_UP, "done", clock=clock)
    learned = recover(journal, GAVE_UP, "done", clock=clock, learn=learn)
    assert (plain.path, learned.path) == ((2,), (3,))
    assert any(isinstance(event, ev.Learned) for event in journal.events(learned.id))
    assert "learned: 1 of 136 tries" in learned.to_dict()["skipped"][0]["reason"]
    scoped = ProjectJournal(journal, "site")
    assert scoped.rung_counts("site", "task", MONTH, clock.now())


def test_a_durable_run_learns_as_well(journal: Journal) -> None:
    """A run with an id asks the same journal."""
    clock = FakeClock(1_000.0)
    for n in range(45):
        recover(journal, *[GAVE_UP] * (4 if n % 3 else 5), "done", clock=clock)
    outcome = rung.durable.recover_sync(
        Script(GAVE_UP, "done"),
        rung.Request(prompt="do it", model="small"),
        policy=rung.policy("task", report="", learn={"enabled": True, "explore": 0.0}),
        journal=journal,
        run_id="r",
        clock=clock,
        breakers=rung.BreakerRegistry(),
    )
    assert outcome.path == (3,)
