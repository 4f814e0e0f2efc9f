"""Error types in the journal: counted beside the kinds, and added to a journal of an older schema."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.store import open_journal
from rung.store.journal.retention import check_integrity
from rung.store.queries import listing, reports
from rung.store.queries.reports_sql import ReportFilter
from rung.testing import HttpError
from tests.store.stories import NOON, differences, opened, succeeded, tables

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

AGAIN = ev.Decided(NOON, ev.Repeat(0, 1.0, "again"))
ALL = ReportFilter()


def record(journal: Journal, incident: str, *statuses: int) -> None:
    """Record an incident whose attempts fail with these statuses, and then succeed."""
    failures = [classify(HttpError(status, "no")) for status in statuses]
    tried = [each for one in failures for each in (ev.AttemptFailed(NOON, one, 0.1, 0.0, may_retry=True), AGAIN)]
    journal.append(incident, 0, [opened(incident), *tried, succeeded()]).result(30)


def execute(statement: str, connection: BackendConnection) -> None:
    connection.execute(statement)


def test_failures_count_by_error_type(journal: Journal) -> None:
    """503 and 504 count as server errors and 403 as an authentication error, by counts and by rows alike."""
    record(journal, "a", 503, 504, 500, 429)
    record(journal, "b", 403)
    expected = {"server_error": 3, "rate_limit": 1, "auth_error": 1}
    for where in (ALL, ReportFilter(session="s"), ReportFilter(project="p")):
        counts = reports.failures_by_error_type(journal, where)
        assert len(counts) == 8
        assert {name: n for name, n in counts.items() if n} == expected
    assert reports.failures_by_error_type(journal, ReportFilter(kind="timeout"))["server_error"] == 1  # the 504
    assert [row.error_type for row in reversed(listing.attempts(journal, incident="a").rows)] == [
        "server_error", "server_error", "server_error", "rate_limit", "",
    ]  # fmt: skip
    before = tables(journal)
    journal.rebuild()
    assert differences(before, tables(journal)) == []


def test_a_journal_of_the_second_schema_gets_error_types(url: str) -> None:
    """A journal of an older Rung counts its failures by the types of their kinds; its other counts stay."""
    with open_journal(url) as journal:
        record(journal, "a", 503, 504)
        record(journal, "b", 429)
        for statement in (
            "DROP TABLE by_error_type",
            "ALTER TABLE attempt DROP COLUMN error_type",
            "ALTER TABLE incident DROP COLUMN orders",
            "ALTER TABLE by_end DROP COLUMN assisted",
            "UPDATE rung_schema SET version = 2",
        ):
            journal.write(partial(execute, statement), lambda _: True).result()
    with open_journal(url) as journal:
        counts = reports.failures_by_error_type(journal, ALL)
        assert (counts["server_error"], counts["timeout"], counts["rate_limit"]) == (1, 1, 1)  # a 504 was a timeout
        assert reports.failures_by_error_type(journal, ReportFilter(session="s")) == counts
        assert all(finding.ok for finding in check_integrity(journal))
        journal.rebuild()
        assert reports.failures_by_error_type(journal, ALL)["server_error"] == 2
