"""`rung report`: what fails, how often, and what helps; over all of it or one kind, model, project or session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from rung.cli.journal.option import journal_option, moment, now, opened
from rung.cli.output import as_json, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.store.journal.journal import Journal
    from rung.store.queries.reports_rows import TrendPoint
    from rung.store.queries.reports_sql import ReportFilter

AXES: Final = ("kind", "model", "project", "day", "hour", "tool", "prompt", "pattern")
MIXED: Final = 3  # reports in an overview show so many rows each, or five
HOURLY: Final = 3 * 86_400  # seconds up to which a trend is drawn by the hour
DIGITS: Final = 9  # of a number for programs: sums of cents are no long fractions
DERIVED: Final = ("rate", "dollars_each")  # properties that belong into what programs read


class Report(NamedTuple):
    """A report's rows by the name of each part, and its lines over time, where it has any."""

    parts: Mapping[str, Sequence[Any]]
    trend: Mapping[str, Sequence[TrendPoint]] = {}


@click.command()
@click.argument("name", default="overview", metavar="[NAME]")
@click.option(
    "--by",
    type=click.Choice(AXES),
    help="What `failures` counts by; prompt: the recovery prompt given, pattern: how the caller's begins.  [default: kind]",
)
@click.option(
    "--since",
    callback=moment,
    metavar="WHEN",
    help="Start of the time range: 7d, 12h, or a date such as 2026-11-01 (UTC).",
)
@click.option("--until", callback=moment, metavar="WHEN", help="End of the time range.")
@click.option("--project", help="Only this project.")
@click.option("--model", help="Only this model.")
@click.option("--kind", help="Only this kind of failure.")
@click.option("--session", help="Only this session.")
@click.option("--limit", "-n", type=click.IntRange(1), help="Most rows to print.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@journal_option
@as_json
def command(
    name: str, *, by: str | None, limit: int | None, as_csv: bool, journal_at: str | None, as_json: bool, **filters: Any
) -> None:
    """Report what fails, how often, and what helps.

    \b
    NAME  overview   the numbers that matter, of everything (default)
          failures   how often, of how many attempts, by kind or --by
          recovery   how incidents end, by kind; how long that takes, by rung
          rungs      which rung, prompt and model saved how many, at what cost
          messages   the errors seen most, with an example of each
          models     failures, times and cost by model
          latency    how long attempts take by model: p50, p95, p99
          spirals    sessions in which the same failure comes again and again
    """  # noqa: D301  # click's mark for lines that stay as they are
    from rung.store.queries.reports_sql import GroupBy, ReportFilter

    if name not in REPORTS:
        from rung.core.domain.errors import ConfigError
        from rung.core.domain.settings_schema import suggestion

        raise ConfigError("report", name, f"one of {', '.join(REPORTS)}{suggestion(name, REPORTS)}")
    if by is not None and name != "failures":
        raise click.UsageError("--by is for `rung report failures`")
    where = ReportFilter(**filters, limit=limit or 20)
    with opened(journal_at) as journal:
        found = REPORTS[name](journal, where, GroupBy(by or "kind"))
    if as_json:
        parts = {part: [_table(row) for row in _some(rows, limit, by)] for part, rows in found.parts.items()}
        print_json({"report": name, "filter": _set(filters), **parts})
    elif as_csv:
        _print_csv(_some(next(iter(found.parts.values())), limit, by))
    else:
        from rung.cli.journal.report_tables import ReportPage

        ReportPage(where).show(name, found, by or "kind")


def _overview(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries import reports as r
    from rung.store.queries.reports_sql import GroupBy, ReportPart

    parts: dict[str, Sequence[Any]] = {
        "totals": [r.totals(journal, where)],
        "kinds": r.failures(journal, where, GroupBy.KIND)[:5],
        "models": r.failures(journal, where, GroupBy.MODEL)[:MIXED],
        "rungs": r.rung_effects(journal, where, (ReportPart.RUNG,)),
        "messages": r.messages(journal, where, now=now())[:MIXED],
    }
    return Report(parts, r.trend(journal, where, hourly=_hourly(where)))


def _failures(journal: Journal, where: ReportFilter, by: Any) -> Report:
    from rung.store.queries import reports as r
    from rung.store.queries.reports_sql import GroupBy

    rows = r.failures(journal, where, by)
    timed = by in {GroupBy.KIND, GroupBy.MODEL, GroupBy.PROJECT, GroupBy.TOOL}
    return Report({"rows": rows}, r.trend(journal, where, by, hourly=_hourly(where)) if timed else {})


def _recovery(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries import reports as r

    return Report({"rows": r.recovery(journal, where), "rungs": r.recovery_by_rung(journal, where)})


def _rungs(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.reports import rung_effects

    return Report({"rows": rung_effects(journal, where)})


def _messages(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.reports import messages

    return Report({"rows": messages(journal, where, now=now())})


def _models(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries import reports as r
    from rung.store.queries.reports_sql import GroupBy, ReportPart

    parts: dict[str, Sequence[Any]] = {
        "rows": r.failures(journal, where, GroupBy.MODEL),
        "latency": r.latency(journal, where) if where.kind is None and where.session is None else [],
        "rescues": r.rung_effects(journal, where, (ReportPart.MODEL,)),
    }
    return Report(parts, r.trend(journal, where, GroupBy.MODEL, hourly=_hourly(where)))


def _latency(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.reports import latency

    return Report({"rows": latency(journal, where)})


def _spirals(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.stuck_sessions import stuck_sessions

    return Report({"rows": stuck_sessions(journal, where)})


REPORTS: Final[Mapping[str, Callable[[Journal, ReportFilter, Any], Report]]] = {
    "overview": _overview,
    "failures": _failures,
    "recovery": _recovery,
    "rungs": _rungs,
    "messages": _messages,
    "models": _models,
    "latency": _latency,
    "spirals": _spirals,
}


def _hourly(where: ReportFilter) -> bool:
    until = where.until if where.until is not None else now()
    return where.since is not None and until - where.since <= HOURLY


def _set(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}


def _table(row: Any) -> dict[str, Any]:
    """A row by its columns, with what follows from them."""
    table: dict[str, Any] = row._asdict()
    table |= {name: getattr(row, name) for name in DERIVED if hasattr(row, name)}
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in table.items()}


def _some(rows: Sequence[Any], limit: int | None, by: str | None) -> Sequence[Any]:
    """At most so many: the first, or of days and hours the last."""
    if limit is None:
        return rows
    return rows[-limit:] if by in {"day", "hour"} else rows[:limit]


def _print_csv(rows: Sequence[Any]) -> None:
    """The report's first part, with a heading; what strangers wrote is no formula."""
    import csv
    import sys

    from rung.store.journal.export import escape_cell

    tables = [_table(row) for row in rows]
    if tables:
        writer = csv.DictWriter(sys.stdout, list(tables[0]))
        writer.writeheader()
        writer.writerows({name: escape_cell(value) for name, value in table.items()} for table in tables)
