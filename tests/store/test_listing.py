"""Lists of sessions, incidents and their details: filters, sorting, pages and key figures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.events import Status
from rung.core.domain.failures import PASSING_KINDS
from rung.store.queries.kpis import failure_rate_by_day, success, success_by_day, top_error_messages
from rung.store.queries.listing import (
    IncidentSort,
    SessionSort,
    asks,
    attempts,
    crashes,
    incident,
    incidents,
    levels,
    model_changes,
    model_uses,
    projects,
    session,
    sessions,
)
from rung.store.queries.reports_sql import ReportFilter
from tests.store.recorded import DAY, START, Recorded, first_failure, took
from tests.store.stories import NOON, failed, opened, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

ALL = ReportFilter()


@pytest.fixture
def recorded(read_only_recorded: Recorded) -> Recorded:
    return read_only_recorded


def everything(fetch: Callable[..., Any], **settings: Any) -> list[Any]:
    """Return all rows, collected from pages of two."""
    rows, after = [], ""
    while True:
        page = fetch(**settings, limit=2, after=after)
        rows += page.rows
        after = page.after
        if not after:
            return rows
        assert len(page.rows) == 2


# -- sessions -------------------------------------------------------------------------------------------


def test_sessions_add_up(recorded: Recorded) -> None:
    """Each session is listed once, with its attempts and cost."""
    rows = sessions(recorded.journal).rows
    tried = Counter(one.session for one in recorded.tried() if one.session)
    bad = Counter(one.session for one in recorded.tried() if one.session and one.kind)
    assert {row.id: row.attempts for row in rows} == tried
    assert {row.id: row.failures for row in rows if row.failures} == bad
    assert [row.touched_at for row in rows] == sorted((row.touched_at for row in rows), reverse=True)
    for row in rows:
        uses = model_uses(recorded.journal, row.id)
        assert sum(use.attempts for use in uses) == row.attempts
        assert sum(use.dollars for use in uses) == pytest.approx(row.dollars)
        assert session(recorded.journal, row.id) == row
    assert session(recorded.journal, "nobody") is None


@pytest.mark.parametrize("sort", SessionSort)
def test_pages_of_sessions(recorded: Recorded, sort: SessionSort) -> None:
    """Pages contain every session once, in the requested order."""
    whole = sessions(recorded.journal, sort=sort).rows
    assert len(whole) == 4
    first = sessions(recorded.journal, sort=sort, limit=2)
    rest = sessions(recorded.journal, sort=sort, after=first.after)
    assert [*first.rows, *rest.rows] == whole
    assert rest.after == ""


def test_pages_while_sessions_are_added(journal: Journal) -> None:
    """A page continues where the last one ended, even when a session is added meanwhile."""
    made = Recorded(journal)
    made.story()
    whole = sessions(journal, sort=SessionSort.BEGAN).rows
    first = sessions(journal, sort=SessionSort.BEGAN, limit=2)
    made.recover("fine", session="new")
    rest = sessions(journal, sort=SessionSort.BEGAN, after=first.after)
    assert [*first.rows, *rest.rows] == whole
    assert rest.after == ""


def test_sessions_are_narrowed(recorded: Recorded) -> None:
    """Sessions are filtered by project, model, status, and a text in names or the last message."""
    find = recorded.journal

    def names(**where: Any) -> set[str]:
        return {row.id for row in sessions(find, **where).rows}

    assert names(project="web") == {"a", "b"}
    assert names(project="api") == {"c", "d"}
    assert names(text="OVERLOADED") == {"a", "c"}
    assert names(text="no idea") == {"d"}
    assert names(text="100%") == names(text="_") == set()
    assert names(since=START + DAY) == {"b", "c", "d"}
    by_status = {row.id: row.status for row in sessions(find).rows}
    for status in set(by_status.values()):
        assert names(status=status) == {name for name, found in by_status.items() if found == status}
    assert names(model="nobody's") == set()


def test_a_sessions_state_while_it_lasts(journal: Journal) -> None:
    """A session's status follows its incidents: working, recovering, waiting, and the last ending."""

    def tell(place: int, *events: ev.Event) -> str:
        journal.append("a", place, events).result(30)
        (row,) = sessions(journal).rows
        return row.status

    ask = ev.Ask(1, "go on?", (ev.Option("retry", "Try again"),), 0.5, "large", "", "stuck")
    assert tell(0, opened("a")) == "working"
    assert tell(1, failed(NOON + 1), ev.Decided(NOON + 1, ev.Repeat(0, 5.0, "again"))) == "recovering"
    assert incidents(journal).rows[0].due_at == NOON + 6
    assert tell(3, failed(NOON + 6), ev.Decided(NOON + 6, ask)) == "waiting"
    assert incidents(journal).rows[0].due_at is None
    (waiting,) = asks(journal)
    assert (waiting.question, waiting.options, waiting.model) == ("go on?", [("retry", "Try again")], "large")
    assert [row.id for row in incidents(journal, status="waiting").rows] == ["a"]
    assert incidents(journal).rows[0].waiting
    assert tell(5, ev.Answered(NOON + 9, "retry"), ev.Decided(NOON + 9, ev.Repeat(0, 0.0, "told to"))) == "recovering"
    assert asks(journal) == []
    assert asks(journal, state=None)[0].answer == "retry"
    assert tell(7, succeeded(NOON + 11)) == "recovered"
    assert incidents(journal, status="waiting").rows == []
    assert [(row.rung, row.tries, row.result) for row in levels(journal, "a")] == [
        ("retry", 1, "failed"),
        ("nudge", 0, "asked"),
        ("retry", 1, "saved"),
    ]


def test_a_question_nobody_answered(journal: Journal) -> None:
    """An incident that ended without an answer no longer waits."""
    ask = ev.Decided(NOON, ev.Ask(2, "what now?", (), None, "", "", "stuck"))
    journal.append("a", 0, [opened("a"), failed(), ask]).result(30)
    assert len(asks(journal, project="p")) == 1
    journal.append("a", 3, [ev.Closed(NOON + 1, Status.BLOCKED, "nobody there")]).result(30)
    assert asks(journal) == []
    assert [row.state for row in asks(journal, state=None, incident="a")] == ["over"]


# -- incidents ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort", IncidentSort)
def test_pages_of_incidents(recorded: Recorded, sort: IncidentSort) -> None:
    """Pages contain every incident with a failure once, in the requested order; or every call."""
    troubled = {outcome.id for outcome in recorded.outcomes if first_failure(outcome)}
    whole = incidents(recorded.journal, sort=sort).rows
    assert everything(lambda **more: incidents(recorded.journal, sort=sort, **more)) == whole
    assert {row.id for row in whole} == troubled
    keys = [(getattr(row, {"opened": "opened_at"}.get(sort, sort)), row.id) for row in whole]
    assert keys == sorted(keys, reverse=True)
    calls = everything(lambda **more: incidents(recorded.journal, troubled=False, sort=sort, **more))
    assert {row.id for row in calls} == {outcome.id for outcome in recorded.outcomes}


def test_incidents_are_narrowed(recorded: Recorded) -> None:
    """Incidents are filtered by status, project, model, kind, session, time and text, alone and combined."""
    find = recorded.journal
    rows = incidents(find).rows

    def names(**where: Any) -> set[str]:
        return {row.id for row in incidents(find, **where).rows}

    for name in ("status", "project", "model", "kind", "session", "fingerprint"):
        for value in {getattr(row, name) for row in rows}:
            assert names(**{name: value}) == {row.id for row in rows if getattr(row, name) == value}, (name, value)
    assert names(since=START + DAY, until=START + 2 * DAY) == {
        row.id for row in rows if START + DAY <= row.opened_at < START + 2 * DAY
    }
    assert names(text="Slow Down") == {row.id for row in rows if row.message == "slow down"}
    assert names(text="d") >= {row.id for row in rows if row.session == "d"}
    assert names(text=rows[0].id) == {rows[0].id}
    assert names(text="nowhere") == names(text="%") == set()
    assert names(text="overloaded", project="api") == {
        row.id for row in rows if row.project == "api" and row.message == "overloaded"
    }
    assert incident(find, rows[0].id) == rows[0]
    assert incident(find, "nobody") is None


def test_what_belongs_to_an_incident(recorded: Recorded) -> None:
    """An incident's attempts, rungs and model changes match its events."""
    for outcome in recorded.outcomes:
        tried = [one for one in recorded.tried() if one.outcome is outcome]
        rows = everything(lambda outcome=outcome, **more: attempts(recorded.journal, incident=outcome.id, **more))
        assert [(row.kind, row.model, row.rung, row.ok) for row in reversed(rows)] == [
            (one.kind, one.model, one.rung, not one.kind) for one in tried
        ]
        stood = levels(recorded.journal, outcome.id)
        assert sum(row.tries for row in stood) == sum(bool(one.rung) for one in tried)
        assert all(row.left_at is not None for row in stood)
        saved = [row.result for row in stood if row.result == "saved"]
        assert len(saved) == (outcome.status is Status.RECOVERED)
        handed = model_changes(recorded.journal, incident=outcome.id)
        decided = [
            event.decision
            for event in outcome.events
            if isinstance(event, ev.Decided) and isinstance(event.decision, ev.HandOver)
        ]
        assert [(row.to_model, row.reason) for row in handed] == [(one.model, one.reason) for one in decided]
    assert model_changes(recorded.journal, session="c")


def test_projects(recorded: Recorded) -> None:
    """Each project is listed with all its attempts."""
    tried = Counter(one.project for one in recorded.tried())
    assert {row.id: row.attempts for row in projects(recorded.journal)} == tried
    assert sum(row.incidents for row in projects(recorded.journal)) == len(recorded.outcomes)


def test_crashes(journal: Journal) -> None:
    """Crashes are listed, the latest first."""
    for number in range(3):
        broke = ev.Crashed(NOON + number, f"hook {number}", "KeyError: 'x'")
        journal.append(f"a{number}", 0, [opened(f"a{number}"), broke]).result(30)
    assert [(row.what, row.project) for row in crashes(journal, limit=2)] == [("hook 2", "p"), ("hook 1", "p")]
    assert [row.what for row in crashes(journal, since=NOON + 2)] == ["hook 2"]


@pytest.mark.parametrize("after", ["x", "W10", "!!!", "eyJhIjoxfQ", "WyJvcGVuZWRfYXQiLCJ4IiwieSJd", "é"])
def test_a_wrong_mark_is_refused(recorded: Recorded, after: str) -> None:
    """An invalid cursor, or one of another sort order, raises."""
    with pytest.raises(ConfigError, match="after"):
        incidents(recorded.journal, after=after)


def test_wrong_questions(recorded: Recorded) -> None:
    """Too many rows, attempts without a subject, and another list's cursor are rejected."""
    for limit in (0, 1001):
        with pytest.raises(ConfigError, match="limit"):
            sessions(recorded.journal, limit=limit)
    with pytest.raises(ConfigError, match="a session or an incident"):
        attempts(recorded.journal)
    mark = sessions(recorded.journal, limit=1).after
    with pytest.raises(ConfigError, match="ordered by opened_at"):
        incidents(recorded.journal, after=mark)


# -- figures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where", [ALL, ReportFilter(project="api"), ReportFilter(session="c"), ReportFilter(model="large")]
)
def test_the_four_figures(recorded: Recorded, where: ReportFilter) -> None:
    """The key figures equal those counted from the outcomes."""
    chosen = []
    for outcome in recorded.outcomes:
        begun = outcome.events[0]
        assert isinstance(begun, ev.Opened)
        assert begun.request is not None
        facts = {"project": begun.terms.project, "session": begun.terms.session, "model": begun.request.model}
        if first_failure(outcome) and all(getattr(where, name) in {None, value} for name, value in facts.items()):
            chosen.append(outcome)

    def with_(outcome: Any, kind: type) -> bool:
        return any(isinstance(event, ev.Decided) and isinstance(event.decision, kind) for event in outcome.events)

    good = [outcome for outcome in chosen if outcome.status is Status.RECOVERED]
    found = success(recorded.journal, where)
    assert found.incidents == len(chosen)
    assert found.recovered == len(good)
    transient = [
        outcome
        for outcome in chosen
        if (first := first_failure(outcome)) is not None and first.failure.kind in PASSING_KINDS
    ]
    good = [outcome for outcome in transient if outcome.status is Status.RECOVERED]
    assert (found.transient, found.transient_recovered) == (len(transient), len(good))
    assert found.auto_recovered == sum(not with_(outcome, ev.Ask) for outcome in good)
    assert found.interventions == sum(with_(outcome, ev.Ask) for outcome in chosen)
    assert found.escalated == sum(with_(outcome, ev.HandOver) for outcome in chosen)
    assert found.mean_seconds == (pytest.approx(took(good)) if good else None)
    assert found.auto_share == (pytest.approx(found.auto_recovered / len(transient)) if transient else None)
    days = success_by_day(recorded.journal, where)
    for name in ("incidents", "recovered", "auto_recovered", "interventions", "escalated"):
        assert sum(getattr(row, name) for row in days) == getattr(found, name)
    assert [row.day for row in days] == sorted({row.day for row in days})


def test_asked_twice_is_one_intervention(journal: Journal) -> None:
    """An incident with two questions counts once as not recovered automatically."""
    ask = ev.Decided(NOON, ev.Ask(1, "go on?", (), None, "", "", "stuck"))
    again = (ask, ev.Answered(NOON, "retry"), ev.Decided(NOON, ev.Repeat(0, 0.0, "told to")))
    journal.append("a", 0, [opened("a"), failed(), *again, failed(), *again, succeeded()]).result(30)
    journal.append("b", 0, [opened("b"), failed(), again[-1], succeeded()]).result(30)
    found = success(journal, ALL)
    assert (found.recovered, found.auto_recovered, found.interventions) == (2, 1, 1)
    assert success(journal, ReportFilter(project="nobody's")).auto_share is None


def test_messages_and_days(recorded: Recorded) -> None:
    """The top messages and daily rates equal those of the reports."""
    top = top_error_messages(recorded.journal, ReportFilter(limit=2), now=START)
    assert len(top) == 2
    assert top[0].seen >= top[1].seen
    days = failure_rate_by_day(recorded.journal, ALL)
    assert sum(rate.attempts for rate in days.values()) == len(list(recorded.tried()))
    assert list(days) == sorted(days)
