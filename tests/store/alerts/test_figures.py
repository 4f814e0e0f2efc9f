"""Figures of alert rules, from both back ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import AlertRule, Metric
from rung.core.domain import events as ev
from rung.store.alerts.figures import UNRECOVERED, Moment, read_figure
from rung.store.fleet.executors import ExecutorRole, announce, beat, executors, forget, new_executor
from rung.testing import HttpError
from tests.store.recorded import DAY, HOUR, NO_IDEA, START, Recorded
from tests.store.stories import NOON, failed, opened

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal


def figure(journal: Journal, when: Metric, now: float, *, observed_since: float = 0.0, **settings: Any) -> Reading:
    """Read the figure of a rule with these settings."""
    rule = AlertRule(when=when, threshold=1, name="r", **settings)
    return read_figure(journal, rule, Moment(now, observed_since))


def test_the_failure_rate_counts_the_attempts_of_its_window(journal: Journal) -> None:
    """It is exact at both ends of the window, whether a row or the sum of an hour is counted."""
    recorded = Recorded(journal)
    recorded.clock.time = START + 1_000
    recorded.recover("fine")  # ends 2 s later
    recorded.clock.time = START + 2 * HOUR + 100
    recorded.recover(HttpError(529, "overloaded"), "fine")
    now = recorded.clock.now() + 10
    wide = figure(journal, Metric.FAILURE_RATE, now, window=float(DAY), minimum=1)
    assert wide == Reading(1 / 3, "1 of 3 attempts failed.")
    since_first = now - (START + 1_001)  # its attempt is the first in the window
    assert figure(journal, Metric.FAILURE_RATE, now, window=since_first, minimum=1) == wide
    without_first = now - (START + 1_003)
    assert figure(journal, Metric.FAILURE_RATE, now, window=without_first, minimum=1).value == 1 / 2


def test_a_rate_of_few_attempts_is_zero(journal: Journal) -> None:
    """With fewer attempts than the minimum, or none, nothing is said about the rate."""
    assert figure(journal, Metric.FAILURE_RATE, START, minimum=1) == Reading(0.0, "No attempts in the window.")
    recorded = Recorded(journal)
    recorded.recover(HttpError(529, "overloaded"), "fine")
    now = recorded.clock.now()
    few = Reading(0.0, "1 of 2 attempts failed. The rate counts as 0 below 3 attempts (minimum).")
    assert figure(journal, Metric.FAILURE_RATE, now, minimum=3) == few
    assert figure(journal, Metric.FAILURE_RATE, now, minimum=2).value == 0.5


def test_incidents_that_were_not_recovered_are_counted(journal: Journal) -> None:
    """Failures that were recovered do not count; incidents that ended failed, partial or blocked do, by project."""
    recorded = Recorded(journal)
    for project in ("web", "shop"):
        journal.project = project
        recorded.recover(HttpError(529, "overloaded"), "fine")
    lost = recorded.recover(*[NO_IDEA] * 20)
    assert recorded.outcomes[-1].status in UNRECOVERED
    now = recorded.clock.now()
    assert figure(journal, Metric.UNRECOVERED, now) == Reading(1.0, f"Incidents: {lost}.")
    assert figure(journal, Metric.UNRECOVERED, now, project="shop").value == 1.0
    assert figure(journal, Metric.UNRECOVERED, now, project="web") == Reading(0.0, "")
    assert figure(journal, Metric.UNRECOVERED, now + 2 * HOUR).value == 0.0


@pytest.mark.parametrize("status", UNRECOVERED)
def test_which_ends_are_not_recovered(journal: Journal, status: str) -> None:
    """Each way to end without success counts once: a nested incident counts with its parent."""
    for name, parent in (("a", ""), ("b", "a")):
        events: list[ev.Event] = [
            opened(name)._replace(parent=parent),
            failed(NOON + 1),
            ev.Closed(NOON + 2, ev.Status(status), "no more rungs"),
        ]
        journal.append(name, 0, events).result(30)
    assert figure(journal, Metric.UNRECOVERED, NOON + 3) == Reading(1.0, "Incidents: a.")


def test_the_cost_of_one_project(journal: Journal) -> None:
    """Dollars are summed by project, and those before the window do not count."""
    recorded = Recorded(journal)
    for project in ("web", "shop", "shop"):
        journal.project = project
        recorded.recover("fine")
    now = recorded.clock.now()
    costs = {name: figure(journal, Metric.COST, now, project=name).value for name in ("web", "shop", None)}
    assert {name: round(value or 0.0, 6) for name, value in costs.items()} == {"web": 0.01, "shop": 0.02, None: 0.03}
    assert figure(journal, Metric.COST, now + 2 * DAY).value == 0.0


def test_stuck_sessions_are_counted_and_named(journal: Journal) -> None:
    """A session whose recovery ended without success counts while that is in the window."""
    recorded = Recorded(journal)
    recorded.recover(*[NO_IDEA] * 20, session="lost")
    recorded.recover("fine", session="good")
    now = recorded.clock.now()
    assert figure(journal, Metric.STUCK, now) == Reading(1.0, "Sessions: lost.")
    assert figure(journal, Metric.STUCK, now + 2 * HOUR).value == 0.0


def test_a_question_counts_when_it_has_waited_for_the_window(journal: Journal) -> None:
    """Questions are counted by their age, and no longer once they are answered."""
    ask = ev.Ask(1, "go on?", (ev.Option("retry", "Try again"),), 0.5, "large", "", "stuck")
    journal.append("a", 0, [opened("a"), failed(NOON + 1), ev.Decided(NOON + 1, ask)]).result(30)
    assert figure(journal, Metric.UNANSWERED, NOON + 600, window=600.0).value == 0.0
    assert figure(journal, Metric.UNANSWERED, NOON + 601, window=600.0) == Reading(1.0, "Incidents: a.")
    assert figure(journal, Metric.UNANSWERED, NOON + 601, window=600.0, project="other").value == 0.0
    journal.append("a", 3, [ev.Answered(NOON + 700, "retry")]).result(30)
    assert figure(journal, Metric.UNANSWERED, NOON + 900, window=600.0).value == 0.0


def test_parked_work_counts_when_it_is_parked_for_the_window(journal: Journal) -> None:
    """A recovery that waits for a limit counts from the end of the window on."""
    parked = ev.Repeat(0, 7_200.0, "limit", until=NOON + 7_201, parked=True)
    events: list[ev.Event] = [opened("a", rungs=("park", "stop")), failed(NOON + 1), ev.Decided(NOON + 1, parked)]
    journal.append("a", 0, events).result(30)
    assert figure(journal, Metric.PARKED, NOON + 600, window=600.0).value == 0.0
    assert figure(journal, Metric.PARKED, NOON + 601, window=600.0) == Reading(1.0, "Incidents: a.")


def test_dead_executors_count_while_their_death_is_in_the_window(journal: Journal) -> None:
    """An executor dies when its lease ends; one whose runs were handed over still counts, and one that left does not."""
    for name in ("a", "b", "c"):
        announce(journal, new_executor(ExecutorRole.WORKER, lease=30.0, executor_id=name), NOON)
    c = next(each for each in executors(journal, NOON) if each.id == "c")
    beat(journal, c, NOON + 100)
    assert figure(journal, Metric.DEAD_WORKERS, NOON + 29, window=600.0).value == 0.0
    assert figure(journal, Metric.DEAD_WORKERS, NOON + 100, window=600.0).value == 2.0
    assert forget(journal, next(each for each in executors(journal, NOON + 100) if each.id == "a"))
    assert figure(journal, Metric.DEAD_WORKERS, NOON + 101, window=600.0).value == 2.0
    assert figure(journal, Metric.DEAD_WORKERS, NOON + 630 + 1, window=600.0).value == 1.0  # c, at NOON + 130


def test_after_an_outage_of_the_database_nobody_is_dead_yet(journal: Journal) -> None:
    """While a process reads the database again for less than a lease, old heartbeats say nothing."""
    announce(journal, replace(new_executor(ExecutorRole.WORKER, lease=30.0, executor_id="a")), NOON)
    assert figure(journal, Metric.DEAD_WORKERS, NOON + 300, observed_since=NOON + 290).value is None
    assert figure(journal, Metric.DEAD_WORKERS, NOON + 321, observed_since=NOON + 290).value == 1.0
