"""Reports equal counts made by hand over the events; each number has its denominator."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.events import Status
from rung.core.domain.failures import Phase
from rung.store import open_journal
from rung.store.queries import reports
from rung.store.queries.groups import GroupState
from rung.store.queries.reports_sql import GroupBy, ReportFilter, ReportPart
from rung.store.queries.stuck_sessions import stuck_sessions
from tests.store.recorded import DAY, HOUR, NO_IDEA, START, Recorded, Tried, first_failure, took

if TYPE_CHECKING:
    from collections.abc import Callable

ALL = ReportFilter()


@pytest.fixture
def recorded(read_only_recorded: Recorded) -> Recorded:
    return read_only_recorded


def named(by: GroupBy) -> Callable[[Tried], str]:
    """Return the key under which an attempt is counted."""
    return {
        GroupBy.MODEL: lambda tried: tried.model,
        GroupBy.PROJECT: lambda tried: tried.project,
        GroupBy.DAY: lambda tried: datetime.fromtimestamp(tried.event.at, UTC).strftime("%Y-%m-%d"),
        GroupBy.HOUR: lambda tried: datetime.fromtimestamp(tried.event.at, UTC).strftime("%Y-%m-%dT%H:00Z"),
    }[by]


@pytest.mark.parametrize("by", [GroupBy.MODEL, GroupBy.PROJECT, GroupBy.DAY, GroupBy.HOUR])
def test_failures_and_attempts_are_counted(recorded: Recorded, by: GroupBy) -> None:
    """Attempts, failures and cost by model, project, day and hour."""
    key = named(by)
    attempts = Counter(key(tried) for tried in recorded.tried())
    failed = Counter(key(tried) for tried in recorded.tried() if tried.kind)
    rows = reports.failures(recorded.journal, ALL, by)
    assert {row.key: row.attempts for row in rows} == attempts
    assert {row.key: row.failures for row in rows if row.failures} == failed
    for row in rows:
        assert row.rate == failed[row.key] / attempts[row.key]
        assert row.dollars == pytest.approx(0.01 * attempts[row.key])
    assert len(rows) >= 2


@pytest.mark.parametrize("by", [GroupBy.KIND, GroupBy.TOOL])
def test_by_kind_and_tool_the_attempts_are_all_there_were(recorded: Recorded, by: GroupBy) -> None:
    """The rate of a kind or tool is its share of all attempts."""

    def key(tried: Tried) -> str:
        assert isinstance(tried.event, ev.AttemptFailed)
        evidence = tried.event.failure.evidence
        in_tool = evidence.tool or ("tool" if evidence.phase is Phase.TOOL else "no tool")
        return tried.kind if by is GroupBy.KIND else in_tool

    total = len(list(recorded.tried()))
    failed = Counter(key(tried) for tried in recorded.tried() if tried.kind)
    rows = reports.failures(recorded.journal, ALL, by)
    assert {row.key: row.failures for row in rows} == failed
    assert {row.attempts for row in rows} == {total}
    assert [row.failures for row in rows] == sorted(failed.values(), reverse=True)


def test_by_prompt_attempts_that_were_given_one_count(recorded: Recorded) -> None:
    """A recovery prompt's failures are counted among the attempts that used it."""
    given_it = [tried for tried in recorded.tried() if tried.prompt]
    rows = {row.key: row for row in reports.failures(recorded.journal, ALL, GroupBy.PROMPT)}
    assert {key: row.attempts for key, row in rows.items()} == Counter(tried.prompt for tried in given_it)
    assert sum(row.failures for row in rows.values()) == sum(bool(tried.kind) for tried in given_it)


def test_a_kind_narrows_the_failures_and_not_the_attempts(recorded: Recorded) -> None:
    """Failures of one kind by model, among all attempts of that model."""
    rows = reports.failures(recorded.journal, ReportFilter(kind="rate_limit"), GroupBy.MODEL)
    expected = {
        model: (
            sum(tried.model == model for tried in recorded.tried()),
            sum(tried.model == model and tried.kind == "rate_limit" for tried in recorded.tried()),
        )
        for model in ("small", "large")
    }
    assert {row.key: (row.attempts, row.failures) for row in rows} == expected
    only = reports.failures(recorded.journal, ReportFilter(kind="rate_limit"), GroupBy.KIND)
    assert [row.key for row in only] == ["rate_limit"]


@pytest.mark.parametrize(
    "where",
    [
        ReportFilter(project="web"),
        ReportFilter(model="large"),
        ReportFilter(session="c"),
        ReportFilter(session="b", model="small"),
        ReportFilter(since=START + DAY),
        ReportFilter(until=START + DAY),
        ReportFilter(since=START + HOUR, until=START + 2 * DAY, project="web"),
        ReportFilter(project=""),
    ],
)
def test_filters_narrow_the_same_way_in_counts_and_rows(recorded: Recorded, where: ReportFilter) -> None:
    """Filters by project, model, session and time select exactly the matching attempts."""

    def meant(tried: Tried) -> bool:
        hour = tried.event.at // HOUR
        if where.since is not None and hour < where.since // HOUR:
            return False
        if where.until is not None and hour >= ceil(where.until / HOUR):
            return False
        wanted = {"project": where.project, "model": where.model, "session": where.session}
        return all(getattr(tried, name) == value for name, value in wanted.items() if value is not None)

    chosen = [tried for tried in recorded.tried() if meant(tried)]
    totals = reports.totals(recorded.journal, where)
    assert (totals.attempts, totals.failures) == (len(chosen), sum(bool(tried.kind) for tried in chosen))
    by_day = reports.failures(recorded.journal, where, GroupBy.DAY)
    assert sum(row.attempts for row in by_day) == len(chosen)
    assert {row.key for row in by_day} == {named(GroupBy.DAY)(tried) for tried in chosen}
    by_kind = reports.failures(recorded.journal, where, GroupBy.KIND)
    assert {row.key: row.failures for row in by_kind} == Counter(tried.kind for tried in chosen if tried.kind)


def test_a_trend_has_every_day_with_something_in_it(recorded: Recorded) -> None:
    """Trends list the attempts and failures of each day in order, with one line per kind."""
    (line,) = reports.trend(recorded.journal, ALL).values()
    attempts = Counter(tried.event.at // DAY * DAY for tried in recorded.tried())
    assert [(point.at, point.attempts) for point in line] == sorted(attempts.items())
    lines = reports.trend(recorded.journal, ALL, GroupBy.KIND, hourly=True)
    for kind, points in lines.items():
        same = Counter(tried.event.at // HOUR * HOUR for tried in recorded.tried() if tried.kind == kind)
        assert {point.at: point.failures or point.attempts for point in points} == same


def test_messages_are_counted_by_fingerprint(recorded: Recorded) -> None:
    """The most frequent failures of all projects come first, with their projects, times, an example and their state."""
    failed = [tried for tried in recorded.tried() if tried.kind]
    seen = Counter(tried.mark for tried in failed)
    by_project = Counter((tried.mark, tried.project) for tried in failed)
    rows = reports.messages(recorded.journal, ALL, now=START)
    assert {row.fingerprint: row.seen for row in rows} == seen
    assert {(row.fingerprint, project) for row in rows for project in row.projects} == set(by_project)
    assert max(len(row.projects) for row in rows) > 1
    assert [row.seen for row in rows] == sorted(seen.values(), reverse=True)
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    for row in rows:
        same = [tried for tried in failed if tried.mark == row.fingerprint]
        assert by_project[row.fingerprint, row.project] == max(
            by_project[row.fingerprint, each] for each in row.projects
        )
        times = [tried.event.at for tried in same]
        assert (row.first_at, row.last_at, row.kind) == (min(times), max(times), same[0].kind)
        assert row.example in {tried.outcome.id for tried in same}
        assert row.state is GroupState.OPEN
    for project in {tried.project for tried in failed}:
        own = reports.messages(recorded.journal, ReportFilter(project=project), now=START)
        assert {row.fingerprint: row.seen for row in own} == Counter(
            tried.mark for tried in failed if tried.project == project
        )
        assert {row.projects for row in own} == {(project,)}
    few = reports.messages(recorded.journal, ReportFilter(kind="unknown", limit=1), now=START)
    assert [row.kind for row in few] == ["unknown"]


def test_messages_of_a_session(recorded: Recorded) -> None:
    """A filter that a rollup does not support, such as a session, reads the attempts."""
    rows = reports.messages(recorded.journal, ReportFilter(session="d"), now=START)
    failed = [tried for tried in recorded.tried() if tried.session == "d" and tried.kind]
    assert [(row.message, row.seen, row.share) for row in rows] == [(str(NO_IDEA), len(failed), 1.0)]


@pytest.mark.parametrize(
    "where", [ALL, ReportFilter(project="api"), ReportFilter(session="c"), ReportFilter(model="large")]
)
def test_recovery_is_counted_by_the_first_failure(recorded: Recorded, where: ReportFilter) -> None:
    """Recovery by kind: incidents, endings, time, cost and questions."""
    found: dict[str, list[Any]] = {}
    for outcome in recorded.outcomes:
        opened, failed = outcome.events[0], first_failure(outcome)
        assert isinstance(opened, ev.Opened)
        assert opened.request is not None
        facts = {"project": opened.terms.project, "session": opened.terms.session, "model": opened.request.model}
        if failed and all(getattr(where, name) in {None, value} for name, value in facts.items()):
            found.setdefault(failed.failure.kind.value, []).append(outcome)
    rows = {row.kind: row for row in reports.recovery(recorded.journal, where)}
    assert rows.keys() == found.keys()
    for kind, outcomes in found.items():
        row, good = rows[kind], [outcome for outcome in outcomes if outcome.status is Status.RECOVERED]
        assert row.incidents == len(outcomes)
        assert row.rate == len(good) / len(outcomes)
        ends = Counter(outcome.status for outcome in outcomes)
        expected = [ends[status] for status in (Status.RECOVERED, Status.PARTIAL, Status.BLOCKED, Status.FAILED)]
        assert [row.recovered, row.partial, row.blocked, row.failed] == expected
        assert row.dollars == pytest.approx(sum(outcome.dollars for outcome in outcomes))
        assert row.mean_seconds == (pytest.approx(took(good)) if good else None)
    if where is ALL:
        assert sum(row.asks for row in rows.values()) == recorded.decisions(ev.Ask) == 1
        assert sum(row.escalations for row in rows.values()) == recorded.decisions(ev.HandOver) > 0


@pytest.mark.parametrize("where", [ALL, ReportFilter(session="c"), ReportFilter(kind="unknown")])
def test_rescues_are_counted_by_rung_prompt_and_model(recorded: Recorded, where: ReportFilter) -> None:
    """Successes, tries and cost by rung, prompt and model, including failed tries."""
    tries: Counter[tuple[str, ...]] = Counter()
    saves: Counter[tuple[str, ...]] = Counter()
    for tried in recorded.tried():
        failed = first_failure(tried.outcome)
        if not tried.rung or failed is None or where.session not in {None, tried.session}:
            continue
        if where.kind in {None, failed.failure.kind.value}:
            tries[tried.rung, tried.prompt, tried.model] += 1
            saves[tried.rung, tried.prompt, tried.model] += not tried.kind
    rows = reports.rung_effects(recorded.journal, where)
    assert {row[:3]: row.tried for row in rows} == tries
    assert {row[:3]: row.saved for row in rows} == saves
    for row in rows:
        assert row.dollars == pytest.approx(0.01 * row.tried)
        assert row.dollars_each == (pytest.approx(0.01 * row.tried / row.saved) if row.saved else None)
    by_rung = reports.rung_effects(recorded.journal, where, (ReportPart.RUNG,))
    assert sum(row.tried for row in by_rung) == sum(tries.values())
    assert all(row.prompt == row.model == row.kind == "" for row in by_rung)


def test_a_rungs_time_to_recovery(recorded: Recorded) -> None:
    """Mean time from the first failure to the recovery, by final rung."""
    last = {tried.outcome.id: tried.rung for tried in recorded.tried()}
    rows = reports.recovery_by_rung(recorded.journal, ALL)
    assert any(row.saved for row in rows)
    for row in rows:
        good = [o for o in recorded.outcomes if o.status is Status.RECOVERED and last[o.id] == row.rung]
        assert (row.looked_at, row.saved) == (len(good), len(good))
        assert row.mean_seconds == (pytest.approx(took(good)) if good else None)


def test_totals(recorded: Recorded) -> None:
    """Totals sum everything up; incidents with a question did not recover automatically."""
    troubled = [outcome for outcome in recorded.outcomes if first_failure(outcome)]
    ends = Counter(outcome.status for outcome in troubled)
    totals = reports.totals(recorded.journal, ALL)
    assert totals.incidents == len(recorded.outcomes)
    assert totals.troubled == len(troubled)
    assert (totals.recovered, totals.partial) == (ends[Status.RECOVERED], ends[Status.PARTIAL])
    assert totals.auto_recovered == totals.recovered - 1
    assert totals.asks == 1
    assert totals.escalations == recorded.decisions(ev.HandOver)
    assert totals.dollars == pytest.approx(sum(outcome.dollars for outcome in recorded.outcomes))
    assert totals.mean_seconds == pytest.approx(took([o for o in troubled if o.status is Status.RECOVERED]))


def test_latency_is_within_nine_percent(recorded: Recorded) -> None:
    """With attempts of two seconds, all percentiles are two seconds within the bucket's accuracy."""
    rows = reports.latency(recorded.journal, ALL)
    assert {row.model: row.attempts for row in rows} == Counter(tried.model for tried in recorded.tried())
    for row in rows:
        assert (row.p50, row.p95, row.p99) == pytest.approx((2.0, 2.0, 2.0), rel=0.09)
    with pytest.raises(ConfigError, match="session: 'c' is invalid; must be omitted"):
        reports.latency(recorded.journal, ReportFilter(session="c"))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0.001, 10_000), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_from_buckets(times: list[float], share: float) -> None:
    """A percentile from buckets is within 9 % of the exact one."""
    from math import log2

    counts = Counter(round(4 * log2(max(seconds * 1_000, 1))) for seconds in times)
    exact = sorted(times)[ceil(share * len(times)) - 1]
    assert reports.percentile(sorted(counts.items()), share) == pytest.approx(exact, rel=0.091)


def test_spirals_are_found_by_session(recorded: Recorded) -> None:
    """A stuck session is scored by the share of attempts that repeated its failure."""
    rows = stuck_sessions(recorded.journal, ALL)
    worst = next(row for row in rows if row.session == "d")
    mine = [tried for tried in recorded.tried() if tried.session == "d"]
    assert (worst.session, worst.project, worst.kind, worst.message) == ("d", "api", "unknown", str(NO_IDEA))
    assert (worst.repeats, worst.attempts, worst.failures) == (len(mine), len(mine), len(mine))
    assert worst.score == round(100 * (len(mine) - 1) / len(mine), 1)
    assert worst.seconds == pytest.approx(2.0 * len(mine))
    assert worst.dollars == pytest.approx(0.01 * len(mine))
    counted = [t for t in recorded.tried() if t.mark and t.rung != "wait"]
    often = {
        session
        for session in "abcd"
        if max(Counter(t.mark for t in counted if t.session == session).values(), default=0) >= 3
    }
    assert {row.session for row in rows} == often
    assert [row.score * (row.repeats - 1) for row in rows] == sorted(
        (row.score * (row.repeats - 1) for row in rows), reverse=True
    )
    assert stuck_sessions(recorded.journal, ReportFilter(project="web", session="d")) == []


def test_an_empty_journal_has_empty_reports(url: str) -> None:
    """Without records every report is empty, and totals are zero."""
    with open_journal(url) as journal:
        for by in GroupBy:
            assert reports.failures(journal, ALL, by) == []
        assert reports.trend(journal, ALL) == {}
        assert not reports.messages(journal, ALL, now=START)
        for report in (
            reports.recovery,
            reports.recovery_by_rung,
            reports.rung_effects,
            reports.latency,
            stuck_sessions,
        ):
            assert report(journal, ALL) == [], report
        assert set(reports.totals(journal, ALL)) == {0, None}


@pytest.mark.parametrize("nasty", ["'; DROP TABLE event; --", "%s", "?", "\\", "x' OR '1'='1"])
def test_values_are_values(recorded: Recorded, nasty: str) -> None:
    """Filter values are bound parameters: SQL in a name matches nothing and harms nothing."""
    for where in (ReportFilter(project=nasty), ReportFilter(model=nasty), ReportFilter(session=nasty)):
        assert reports.totals(recorded.journal, where).attempts == 0
        assert reports.messages(recorded.journal, where, now=START) == []
        assert reports.rung_effects(recorded.journal, where) == []
    assert reports.recovery(recorded.journal, ReportFilter(kind=nasty)) == []
    assert reports.totals(recorded.journal, ALL).attempts > 0


def test_a_filter_that_cannot_be() -> None:
    """A filter with an empty time range or a limit of zero is rejected."""
    with pytest.raises(ConfigError, match="until"):
        ReportFilter(since=2.0, until=1.0)
    with pytest.raises(ConfigError, match="limit"):
        ReportFilter(limit=0)
