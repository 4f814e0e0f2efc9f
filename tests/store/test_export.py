"""Export and retention: every row once in every format; pruned incidents are deleted and stay counted."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import ConfigError, StoreError
from rung.core.domain.event_codec import from_json
from rung.store import open_journal
from rung.store.journal.export import TABLES, ExportFormat, ExportSubject, escape_cell, export, pages
from rung.store.journal.retention import check_integrity, prune, vacuum, was_pruned
from rung.store.queries import reports
from rung.store.queries.reports_sql import GroupBy, ReportFilter
from rung.store.read_models.batch import COUNTS
from rung.testing import HttpError
from tests.store.recorded import DAY, START, Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal


@pytest.fixture
def recorded(url: str) -> Iterator[Recorded]:
    with open_journal(url) as journal:
        made = Recorded(journal)
        made.story()
        yield made


def exported(journal: Journal, what: ExportSubject, form: ExportFormat, where: ReportFilter | None = None) -> bytes:
    out = io.BytesIO()
    rows = export(journal, what, form, out, where or ReportFilter())
    assert rows == sum(len(page) for page in pages(journal, what, where or ReportFilter()))
    return out.getvalue()


def told(journal: Journal) -> list[dict[str, Any]]:
    lines = exported(journal, ExportSubject.EVENTS, ExportFormat.JSONL).decode().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("what", ExportSubject)
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_pages_hold_every_row_once_in_order(recorded: Recorded, what: ExportSubject, size: int) -> None:
    """Every row is exported once, in key order, for any page size."""
    _, columns, key = TABLES[what]
    rows = [row for page in pages(recorded.journal, what, size=size) for row in page]
    table = TABLES[what].source.table
    assert len(rows) == recorded.journal.read(f"SELECT count(*) FROM {table}")[0][0]
    keys = [tuple(row[columns.index(name)] for name in key) for row in rows]
    assert keys == sorted(set(keys))


def test_events_come_back_as_they_were(recorded: Recorded) -> None:
    """JSON lines of events decode to equal events, in order."""
    lines = told(recorded.journal)
    for outcome in recorded.outcomes:
        mine = [line for line in lines if line["incident"] == outcome.id]
        assert [line["n"] for line in mine] == list(range(len(outcome.events)))
        assert [from_json(line) for line in mine] == list(outcome.events)


@pytest.mark.parametrize("what", [ExportSubject.ATTEMPTS, ExportSubject.INCIDENTS])
def test_csv_json_and_parquet_say_the_same(recorded: Recorded, what: ExportSubject, tmp_path: Path) -> None:
    """The three formats contain the same rows; numbers stay numbers where the format has them."""
    from pyarrow import parquet  # type: ignore[import-untyped]  # ships no types

    journal = recorded.journal
    as_json = [json.loads(line) for line in exported(journal, what, ExportFormat.JSONL).splitlines()]
    as_csv = list(csv.DictReader(io.StringIO(exported(journal, what, ExportFormat.CSV).decode(), newline="")))
    as_parquet = parquet.read_table(io.BytesIO(exported(journal, what, ExportFormat.PARQUET))).to_pylist()
    assert as_parquet == as_json
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in as_json] == as_csv
    assert len(as_json) == (len(recorded.outcomes) if what is ExportSubject.INCIDENTS else len(list(recorded.tried())))


@pytest.mark.parametrize("what", ExportSubject)
def test_an_export_is_narrowed_like_a_report(recorded: Recorded, what: ExportSubject) -> None:
    """Exports are filtered by project and time; events by their incident's project."""
    total = sum(len(page) for page in pages(recorded.journal, what))
    parts = [sum(len(page) for page in pages(recorded.journal, what, ReportFilter(project=p))) for p in ("web", "api")]
    assert sum(parts) == total
    assert all(parts)
    middle = START + DAY / 2
    halves = (ReportFilter(until=middle), ReportFilter(since=middle))
    assert sum(sum(len(page) for page in pages(recorded.journal, what, half)) for half in halves) == total


def test_an_empty_export_has_its_heading(url: str) -> None:
    """An empty journal exports a CSV header, no JSON lines, and a Parquet file without rows."""
    from pyarrow import parquet

    with open_journal(url) as journal:
        assert exported(journal, ExportSubject.ATTEMPTS, ExportFormat.CSV).startswith(b"incident,n,number,at,")
        assert exported(journal, ExportSubject.ATTEMPTS, ExportFormat.CSV).count(b"\n") == 1
        assert exported(journal, ExportSubject.ATTEMPTS, ExportFormat.JSONL) == b""
        table = parquet.read_table(io.BytesIO(exported(journal, ExportSubject.ATTEMPTS, ExportFormat.PARQUET)))
        assert (table.num_rows, tuple(table.column_names)) == (0, TABLES[ExportSubject.ATTEMPTS].columns)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-2", "@cmd", "\t=1"])
def test_a_spreadsheet_runs_no_stranger_s_formula(text: str) -> None:
    """Texts that a spreadsheet would run as formulas are escaped; numbers are unchanged."""
    assert escape_cell(text) == f"'{text}"
    assert (escape_cell("x=1"), escape_cell(-2.5), escape_cell(None), escape_cell("")) == ("x=1", -2.5, None, "")


def test_parquet_without_pyarrow(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow, one line says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match=r"pip install 'rung\[parquet\]'"):
        export(recorded.journal, ExportSubject.ATTEMPTS, ExportFormat.PARQUET, io.BytesIO())


# -- retention ------------------------------------------------------------------------------------------


def counts(journal: Journal) -> dict[str, list[Any]]:
    return {table: sorted(journal.read(f"SELECT * FROM {table}")) for table in (*COUNTS, "failure_group", "session")}


def left(journal: Journal) -> set[str]:
    return {row[0] for row in journal.read("SELECT id FROM incident")}


def test_what_is_old_goes_whole_and_stays_counted(recorded: Recorded) -> None:
    """Pruning deletes all rows of the incidents; other rows, counts and reports are unchanged."""
    journal, cut = recorded.journal, START + DAY / 2
    before, totals = counts(journal), reports.totals(journal, ReportFilter())
    old = {outcome.id for outcome in recorded.outcomes if outcome.events[-1].at < cut}
    young = {outcome.id for outcome in recorded.outcomes} - old
    gone = prune(journal, older_than=cut)
    assert gone.incidents == len(old) > 0
    assert gone.events == sum(len(o.events) for o in recorded.outcomes if o.id in old)
    assert left(journal) == young
    for table in ("event", "attempt", "model_change", "ask", "crash"):
        assert {row[0] for row in journal.read(f"SELECT incident FROM {table}")} <= young
    assert counts(journal) == before
    assert reports.totals(journal, ReportFilter()) == totals
    assert [journal.events(name) for name in sorted(young)] == [
        list(outcome.events) for outcome in sorted(recorded.outcomes, key=lambda o: o.id) if outcome.id in young
    ]
    assert prune(journal, older_than=cut) == (0, 0)


def test_requests_go_with_the_last_incident_that_made_them(recorded: Recorded) -> None:
    """A request used by a younger incident is kept; without incidents, no requests remain."""
    journal = recorded.journal
    prune(journal, older_than=START + DAY / 2)
    kept = {row[0] for row in journal.read("SELECT digest FROM request")}
    assert {row[0] for row in journal.read("SELECT request FROM incident")} <= kept
    prune(journal, older_than=recorded.clock.now() + 1)
    assert left(journal) == set()
    assert journal.read("SELECT digest FROM request") == []


def test_an_open_incident_is_never_pruned(recorded: Recorded) -> None:
    """An open incident is never pruned, whatever its age."""
    journal = recorded.journal
    events = recorded.outcomes[1].events[:3]  # interrupted after its first decision
    opened = events[0]._replace(id="open-1")  # type: ignore[call-arg]  # the first event is Opened
    journal.append("open-1", 0, (opened, *events[1:])).result()
    prune(journal, older_than=recorded.clock.now() + DAY)
    assert left(journal) == {"open-1"}
    assert len(journal.events("open-1")) == 3
    prune(journal, max_bytes=0)
    assert left(journal) == {"open-1"}


def test_one_project_is_pruned_alone(recorded: Recorded) -> None:
    """With a project, only its incidents are pruned."""
    prune(recorded.journal, older_than=recorded.clock.now() + 1, project="web")
    assert {row[0] for row in recorded.journal.read("SELECT project FROM incident")} == {"api"}


def test_more_than_one_batch(url: str) -> None:
    """Many incidents are pruned in many short transactions."""
    with open_journal(url) as journal:
        made = Recorded(journal)
        for _ in range(10):
            made.recover("fine")
        assert prune(journal, older_than=made.clock.now() + 1, batch=3).incidents == 10
        assert left(journal) == set()


def test_down_to_a_size(tmp_path: Path) -> None:
    """With a size, the oldest incidents are pruned until the file fits."""
    with open_journal(tmp_path / "journal.db") as journal:
        made = Recorded(journal)
        for number in range(40):
            made.recover(HttpError(429, f"slow down {'x' * 4_000}"), "fine", session=str(number))
        _, full = vacuum(journal)
        empty_at_best = 400_000
        assert full > empty_at_best
        gone = prune(journal, max_bytes=empty_at_best)
        assert journal.backend.size() <= empty_at_best
        kept = left(journal)
        assert 0 < len(kept) == 40 - gone.incidents
        assert kept == {outcome.id for outcome in made.outcomes[gone.incidents :]}
        assert prune(journal, max_bytes=empty_at_best) == (0, 0)


def test_prune_needs_to_know_what(recorded: Recorded) -> None:
    """Pruning without an age or a size, or with a negative size, is rejected."""
    with pytest.raises(ConfigError, match="an age, a size"):
        prune(recorded.journal, project="web")
    with pytest.raises(ConfigError, match="max_bytes"):
        prune(recorded.journal, max_bytes=-1)
    assert len(left(recorded.journal)) == len(recorded.outcomes)


def test_nothing_of_what_was_pruned_is_left_in_the_file(tmp_path: Path) -> None:
    """After pruning and vacuuming, no byte of a pruned prompt is in the file or its WAL."""
    path = tmp_path / "journal.db"
    with open_journal(path) as journal:
        made = Recorded(journal)
        made.recover("fine")
        events = made.outcomes[0].events
        opened = events[0]
        request = opened.request.replace(prompt="the crown jewels")  # type: ignore[union-attr]  # the first event is Opened
        journal.append("x-1", 0, (opened._replace(id="x-1", request=request), *events[1:])).result()  # type: ignore[call-arg]
        journal.flush()
        assert any(b"crown jewels" in file.read_bytes() for file in tmp_path.iterdir())
        prune(journal, older_than=made.clock.now() + 1)
        vacuum(journal)
        assert not any(b"crown jewels" in file.read_bytes() for file in tmp_path.iterdir())


# -- check ----------------------------------------------------------------------------------------------


def wrong(journal: Journal) -> set[str]:
    return {finding.what for finding in check_integrity(journal) if not finding.ok}


def test_a_good_journal_is_found_good(recorded: Recorded) -> None:
    """The integrity check passes before and after pruning, and pruning is detected."""
    assert wrong(recorded.journal) == set()
    assert not was_pruned(recorded.journal)
    prune(recorded.journal, older_than=START + DAY / 2)
    assert wrong(recorded.journal) == set()
    assert was_pruned(recorded.journal)


@pytest.mark.parametrize(
    ("harm", "seen"),
    [
        ("DELETE FROM attempt WHERE ok = 1", {"attempts"}),
        ("DELETE FROM by_hour WHERE kind = ''", {"hours", "days", "patterns", "latencies"}),
        ("UPDATE by_day SET n = n + 1", {"days"}),
        ("UPDATE by_pattern SET n = n + 1", {"patterns"}),
        ("UPDATE by_latency SET n = n + 1", {"latencies"}),
        ("DELETE FROM by_message", {"messages"}),
        ("DELETE FROM by_error_type", {"error types"}),
        ("DELETE FROM by_end", {"ends"}),
        ("DELETE FROM event WHERE n = 1", {"attempts", "order"}),
    ],
)
def test_what_does_not_add_up_is_found_and_mended(recorded: Recorded, harm: str, seen: set[str]) -> None:
    """Each manipulated table is named; a rebuild repairs everything but lost events."""
    journal = recorded.journal
    journal.write(lambda connection: connection.execute(harm), lambda _: False).result()
    assert wrong(journal) == seen
    if "event" not in harm:
        journal.rebuild()
        assert wrong(journal) == set()
        assert sum(row.failures for row in reports.failures(journal, ReportFilter(), GroupBy.KIND)) > 0
