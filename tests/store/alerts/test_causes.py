"""The most frequent failure that a notification names, from both back ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import AlertRule, Metric
from rung.store.alerts.causes import explain_reading
from rung.testing import HttpError
from tests.store.recorded import DAY, NO_IDEA, Recorded

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

READ = Reading(1.0, "Figures.")


def rule(when: Metric, project: str | None = None) -> AlertRule:
    """A rule about this figure."""
    return AlertRule(when=when, threshold=1, name="r", project=project)


def test_the_most_frequent_failure_and_its_project_are_named(journal: Journal) -> None:
    """Of the failures in the window the kind and project with the most are named, within the project of the rule."""
    recorded = Recorded(journal)
    journal.project = "web"
    recorded.recover(HttpError(429, "slow down"), "fine")
    journal.project = "shop"
    recorded.recover(HttpError(529, "overloaded"), HttpError(529, "overloaded"), "fine")
    now = recorded.clock.now()
    told = explain_reading(journal, rule(Metric.FAILURE_RATE), READ, now)
    assert told == Reading(1.0, "Figures. Most frequent failure: overloaded in project shop (2).")
    told = explain_reading(journal, rule(Metric.FAILURE_RATE, "web"), READ, now)
    assert told.detail == "Figures. Most frequent failure: rate_limit in project web (1)."
    assert explain_reading(journal, rule(Metric.FAILURE_RATE), READ, now + DAY) == READ


def test_lost_incidents_are_explained_by_their_failure(journal: Journal) -> None:
    """Only incidents that were not recovered count, and an unnamed project is left out."""
    recorded = Recorded(journal)
    for _ in range(2):
        recorded.recover(HttpError(529, "overloaded"), "fine")
    recorded.recover(*[NO_IDEA] * 20)
    told = explain_reading(journal, rule(Metric.UNRECOVERED), READ, recorded.clock.now())
    assert told.detail == "Figures. Most frequent failure: unknown (1)."


@pytest.mark.parametrize("when", [Metric.COST, Metric.STUCK, Metric.PARKED, Metric.DEAD_WORKERS, Metric.UNANSWERED])
def test_other_figures_stay_as_they_are(journal: Journal, when: Metric) -> None:
    """A figure that does not count failures gets no cause."""
    recorded = Recorded(journal)
    recorded.recover(HttpError(529, "overloaded"), "fine")
    assert explain_reading(journal, rule(when), READ, recorded.clock.now()) == READ
