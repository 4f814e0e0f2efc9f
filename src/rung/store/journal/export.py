"""Export of the journal as CSV, JSON lines or Parquet, one page at a time."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import StoreError
from rung.store.queries.reports_sql import ReportFilter, ReportSource
from rung.store.read_models.batch import ROWS
from rung.store.read_models.event_body import shown_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rung.store.backends.port import Row
    from rung.store.journal.journal import Journal

PAGE_ROWS: Final = 5_000
NO_FILTER: Final = ReportFilter()


class ExportSubject(StrEnum):
    """Table to export."""

    ATTEMPTS = "attempts"
    INCIDENTS = "incidents"
    EVENTS = "events"


class ExportFormat(StrEnum):
    """File format of an export."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class ExportTable(NamedTuple):
    """Exported table: its columns, and the key columns that order it and mark where a page ended."""

    source: ReportSource
    columns: tuple[str, ...]
    key: tuple[str, ...]


_OWN_COLUMNS: Final = {name: name for name in ("project", "model", "kind", "session")}
_INCIDENT_COLUMNS: Final = {
    name: f"(SELECT i.{name} FROM incident i WHERE i.id = event.incident)"  # noqa: S608  # our own names
    for name in _OWN_COLUMNS
}
TABLES: Final[Mapping[ExportSubject, ExportTable]] = {
    ExportSubject.ATTEMPTS: ExportTable(
        ReportSource("attempt", 0, "at", _OWN_COLUMNS), ROWS["attempt"], ("at", "incident", "n")
    ),
    ExportSubject.INCIDENTS: ExportTable(
        ReportSource("incident", 0, "opened_at", _OWN_COLUMNS), ROWS["incident"], ("opened_at", "id")
    ),
    ExportSubject.EVENTS: ExportTable(
        ReportSource("event", 0, "at", _INCIDENT_COLUMNS), ("seq", "incident", "n", "at", "name", "body"), ("seq",)
    ),
}
INTEGER_COLUMNS: Final = frozenset(
    {"seq", "n", "number", "ok", "attempts", "failures", "asks", "escalations", "orders"}
)
FLOAT_COLUMNS: Final = frozenset(
    {"at", "seconds", "dollars", "own_dollars", "opened_at", "ended_at", "failed_at", "due_at", "touched_at"}
)


def export(
    journal: Journal, what: ExportSubject, form: ExportFormat, out: IO[bytes], where: ReportFilter = NO_FILTER
) -> int:
    """Write all rows to a binary file; return their number."""
    return _WRITERS[form](what, pages(journal, what, where), out)


def pages(
    journal: Journal, what: ExportSubject, where: ReportFilter = NO_FILTER, *, size: int = PAGE_ROWS
) -> Iterator[list[Row]]:
    """Yield all rows in key order, a page at a time (keyset pagination)."""
    source, columns, key = TABLES[what]
    clause, values = source.clause(where)
    key_indexes = [columns.index(name) for name in key]
    after = f"({', '.join(key)}) > ({', '.join('?' * len(key))})"
    last: list[Any] = []
    while True:
        condition = f"{clause} AND {after}" if clause and last else clause or (f" WHERE {after}" if last else "")
        rows = journal.read(
            f"SELECT {', '.join(columns)} FROM {source.table}{condition} ORDER BY {', '.join(key)} LIMIT {size}",  # noqa: S608  # our own names
            [*values, *last],
        )
        if rows:
            yield rows
        if len(rows) < size:
            return
        last = [rows[-1][index] for index in key_indexes]


def _write_csv(what: ExportSubject, rows: Iterable[Sequence[Row]], out: IO[bytes]) -> int:
    """Write CSV with a header row; texts that a spreadsheet would run as a formula are escaped."""
    import csv
    import io

    count = 0
    columns = TABLES[what].columns
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for page in rows:
        writer.writerows([escape_cell(value) for value in row] for row in page)
        out.write(text.getvalue().encode("utf-8", "replace"))
        text.seek(0)
        text.truncate()
        count += len(page)
    out.write(text.getvalue().encode())  # the header of an empty table
    return count


def escape_cell(value: Any) -> Any:
    """Escape a text that a spreadsheet would run as a formula (CSV injection): error texts are untrusted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value


def _write_jsonl(what: ExportSubject, rows: Iterable[Sequence[Row]], out: IO[bytes]) -> int:
    """Write one JSON object per line; an event's fields stand next to its position."""
    count = 0
    columns = TABLES[what].columns
    for page in rows:
        for row in page:
            table = dict(zip(columns, row, strict=True))
            if what is ExportSubject.EVENTS:
                table = {key: table[key] for key in ("seq", "incident", "n")} | shown_event(table["body"])
            out.write(json.dumps(table, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        count += len(page)
    return count


def _write_parquet(what: ExportSubject, rows: Iterable[Sequence[Row]], out: IO[bytes]) -> int:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
        from pyarrow import parquet
    except ImportError:
        raise StoreError("Parquet export needs pyarrow: pip install 'rung[parquet]'") from None
    columns = TABLES[what].columns
    schema = pa.schema([(name, _type(pa, name)) for name in columns])
    count = 0
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for page in rows:
            arrays = [
                pa.array(values, schema.field(index).type) for index, values in enumerate(zip(*page, strict=True))
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(page)
    return count


def _type(pa: Any, column: str) -> Any:
    if column in INTEGER_COLUMNS:
        return pa.int64()
    return pa.float64() if column in FLOAT_COLUMNS else pa.string()


_WRITERS: Final[Mapping[ExportFormat, Callable[[ExportSubject, Iterable[Sequence[Row]], IO[bytes]], int]]] = {
    ExportFormat.CSV: _write_csv,
    ExportFormat.JSONL: _write_jsonl,
    ExportFormat.PARQUET: _write_parquet,
}
