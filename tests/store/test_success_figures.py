"""The four success figures against tallies made by hand: numerators, denominators, and the period before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from rung.core.recovery.success_criteria import is_manual_restart
from rung.store.queries.reports_sql import ReportFilter
from rung.store.queries.stuck_sessions import MIN_REPEATS, count_stuck, stuck_sessions
from rung.store.queries.success_figures import FigureId, success_by_day, success_figures
from rung.testing import FakeClock, HttpError, Script
from tests.store.stories import NOON, opened

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal
    from rung.store.queries.success_figures import SuccessFigure

DAY = 86_400.0
ALL = ReportFilter()
AGAIN = ev.Decided(NOON, ev.Repeat(0, 1.0, "again"))
ORDERED = ev.Ordered(NOON, "retry", "ann")
ASKED = ev.Decided(NOON, ev.Ask(1, "go on?", (), None, "", "", "stuck"))
LARGE = ev.Decided(NOON, ev.HandOver(1, "large", "", 0.1, "server_error"))


def failure(status: int, when: float = NOON) -> ev.AttemptFailed:
    return ev.AttemptFailed(when, classify(HttpError(status, "no")), 0.5, 0.0, may_retry=True)


def record(journal: Journal, name: str, *events: ev.Event, session: str = "", when: float = NOON) -> None:
    """Record an incident; the last event is its end."""
    journal.append(name, 0, [opened(name, when=when, session=session), *events]).result(30)


def recovered(seconds: float) -> ev.AttemptSucceeded:
    return ev.AttemptSucceeded(NOON + seconds, 0.5, 0.0)


def lost(when: float = NOON) -> ev.Closed:
    return ev.Closed(when, ev.Status.FAILED, "no way left")


def act(journal: Journal, action: str, subject: str, at: float, **detail: Any) -> None:
    """Record an action of a person at a time."""
    row = (at, "ann", action, subject, json.dumps(detail))

    def work(connection: BackendConnection) -> None:
        connection.execute("INSERT INTO audit (at, who, action, subject, detail) VALUES (?, ?, ?, ?, ?)", row)

    journal.write(work, lambda _: False).result()


def figure(journal: Journal, name: FigureId, where: ReportFilter = ALL, now: float = NOON + DAY) -> SuccessFigure:
    return next(one for one in success_figures(journal, where, now=now) if one.figure is name)


def test_transient_errors_recovered_automatically(journal: Journal) -> None:
    """Permanent errors are no part of the figure; a person who is asked or intervenes makes a recovery not automatic."""
    for number in range(10):
        record(journal, f"t{number}", failure(503), AGAIN, recovered(1.0))
    for number in range(30):
        record(journal, f"p{number}", failure(401), lost())
    found = figure(journal, FigureId.AUTO_RECOVERED)
    assert (found.numerator, found.denominator, found.share, found.is_met) == (10, 10, 1.0, True)
    record(journal, "asked", failure(504), ASKED, ev.Answered(NOON, "retry"), AGAIN, recovered(1.0))
    record(journal, "ordered", failure(429), ORDERED, AGAIN, recovered(1.0))
    record(journal, "lost", failure(500), lost())
    found = figure(journal, FigureId.AUTO_RECOVERED)
    assert (found.numerator, found.denominator) == (10, 13)
    assert found.value == pytest.approx(10 / 13)
    assert figure(journal, FigureId.AUTO_RECOVERED, ReportFilter(project="nobody's")).share is None
    days = success_by_day(journal, ALL)[FigureId.AUTO_RECOVERED]
    assert [day.value for day in days] == [pytest.approx(10 / 13)]


def test_mean_time_to_recovery(journal: Journal) -> None:
    """The mean is that of transient errors that recovered: 2 s and 4 s are 3 s; a malformed answer is not retried."""
    record(journal, "a", failure(503), AGAIN, recovered(2.0))
    record(journal, "b", failure(429), AGAIN, recovered(4.0))
    malformed = classify(rung.AttemptError("no JSON", finding=Kind.MALFORMED_OUTPUT))
    record(journal, "c", ev.AttemptFailed(NOON, malformed, 0.5, 0.0, may_retry=True), AGAIN, recovered(90.0))
    record(journal, "d", failure(500), lost(NOON + 500))
    found = figure(journal, FigureId.TIME_TO_RECOVERY)
    assert (found.numerator, found.denominator, found.value, found.is_met) == (6.0, 2, 3.0, True)


def test_manual_restarts_before_and_after(journal: Journal) -> None:
    """Restarts are counted per session and compared with the period before: from 6 on 2 sessions to 3 on 4 is 75 % fewer."""
    for number, session in enumerate(("s1", "s2")):
        record(journal, f"old{number}", failure(500, NOON - DAY), lost(NOON - DAY), session=session, when=NOON - DAY)
    for action, subject, detail in (
        ("retry", "session/s1", {"mode": "plain"}),
        ("retry", "session/s2", {"mode": "context"}),
        ("escalate", "session/s1", {"from_model": "small", "to_model": "large"}),
        ("answer", "incident/old0", {"option": "retry"}),
        ("wake", "incident/old1", {}),
        ("reset", "crew/c/t1", {}),
        ("answer", "incident/old0", {"option": "stop"}),  # ends the work: no restart
        ("set", "policy", {}),
    ):
        act(journal, action, subject, NOON - DAY, **detail)
    for number in range(4):
        record(journal, f"new{number}", failure(500), lost(), session=f"n{number}")
    for action, subject in (("retry", "session/n1"), ("resume", "run/new2"), ("fix", "crew/c/t2")):
        act(journal, action, subject, NOON)
    where = ReportFilter(since=NOON - DAY / 2, until=NOON + DAY / 2)
    found = figure(journal, FigureId.MANUAL_RESTARTS, where)
    assert (found.value, found.numerator, found.denominator, found.per_100_sessions) == (3, 3, 4, 75.0)
    assert (found.before, found.before_sessions) == (6, 2)
    assert found.reduction == pytest.approx(1 - (3 / 4) / (6 / 2))
    assert found.is_met
    everything = figure(journal, FigureId.MANUAL_RESTARTS)
    assert (everything.numerator, everything.denominator, everything.before, everything.is_met) == (9, 6, None, None)
    assert figure(journal, FigureId.MANUAL_RESTARTS, ReportFilter(project="p")).numerator == 7  # a crew has no project
    assert figure(journal, FigureId.MANUAL_RESTARTS, ReportFilter(project="q")).numerator == 0
    assert [day.value for day in success_by_day(journal, ALL)[FigureId.MANUAL_RESTARTS]] == [6, 3]


def test_stuck_sessions_that_used_escalation(journal: Journal) -> None:
    """Of five stuck sessions three changed their model: one by itself, two by a person; the others do not count."""
    record(journal, "a", failure(500), LARGE, failure(500), AGAIN, lost(), session="by itself")
    record(journal, "b", failure(500), lost(), session="escalated")
    record(journal, "c", failure(400), lost(), session="retried on another model")
    record(journal, "d", failure(500), lost(), session="left alone")
    record(
        journal, "e", failure(500), AGAIN, failure(500), AGAIN, failure(500), AGAIN, recovered(9.0),
        session="three times the same",
    )  # fmt: skip
    record(journal, "f", failure(401), lost(), session="no key")  # no model helps
    record(journal, "g", failure(500), AGAIN, recovered(1.0), session="fine")
    record(journal, "h", failure(500), LARGE, recovered(1.0), session="fine on another model")
    act(journal, "escalate", "session/escalated", NOON, from_model="small", to_model="large")
    act(journal, "escalate", "session/fine", NOON, from_model="small", to_model="large")
    act(journal, "retry", "session/retried on another model", NOON, from_model="small", to_model="large")
    act(journal, "retry", "session/left alone", NOON, from_model="small", to_model="small")
    found = figure(journal, FigureId.STUCK_ESCALATED)
    assert (found.numerator, found.denominator, found.value, found.is_met) == (3, 5, 0.6, True)
    assert figure(journal, FigureId.STUCK_ESCALATED, ReportFilter(since=NOON + 1)).denominator == 0


@pytest.mark.parametrize("retries", [1, 3, 6])
def test_a_session_that_waits_out_an_outage_is_not_stuck(journal: Journal, retries: int) -> None:
    """Neither probes nor the retries before them count, nor failures of calls that each recovered; a wait in vain does."""
    policy = rung.policy("task", patience=300, backoff={"base": 1, "jitter": False}, retries=retries)
    for session, failures in (("waits", 12), ("waits in vain", 100)):
        rung.recover_sync(
            Script(*[HttpError(503, "busy")] * failures, "fine"), "do it", policy=policy, journal=journal,
            session=rung.Session(id=session), clock=FakeClock(NOON), breakers=rung.BreakerRegistry(), retry_budget=None,
        )  # fmt: skip
    for number in range(3):
        record(journal, f"again{number}", failure(503), AGAIN, recovered(1.0), session="again and again")
    assert journal.flush()
    in_vain = {"waits in vain"} if retries + 1 >= MIN_REPEATS else set()
    assert {row.session for row in stuck_sessions(journal, ALL)} == {"again and again", *in_vain}
    assert set(count_stuck(journal, ALL).stuck) == {"waits in vain"}


def test_a_session_that_waits_for_its_service_is_not_stuck_yet(journal: Journal) -> None:
    """While a recovery waits for its service, before its first probe, its retries do not count."""
    waits = ev.Decided(NOON, ev.Repeat(1, 30.0, "the service is down"))
    opening = opened("w", when=NOON, session="waits")
    opening = opening._replace(terms=opening.terms._replace(rungs=("retry", "wait", "surface")))
    journal.append("w", 0, [opening, failure(503), AGAIN, failure(503), AGAIN, failure(503), waits]).result(30)
    assert journal.flush()
    assert stuck_sessions(journal, ALL) == []
    assert count_stuck(journal, ALL).stuck == {}


@pytest.mark.parametrize(
    ("action", "option", "expected"),
    [("answer", "retry", True), ("answer", "model:large", True), ("answer", "stop", False), ("answer", "decline", False),
     ("retry", "", True), ("cancel", "", False), ("stop", "", False), ("tell", "", False)],
)  # fmt: skip
def test_what_a_manual_restart_is(action: str, option: str, expected: bool) -> None:
    """A person's action is a restart if the work runs again."""
    assert is_manual_restart(action, option) is expected
