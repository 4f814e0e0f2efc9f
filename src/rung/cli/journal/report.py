"""`rung report`: what fails, how often, and which rungs fix it; for all incidents, or filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from rung.cli.complete_names import complete_kind, complete_model
from rung.cli.help_text import epilogue
from rung.cli.journal.option import (
    existing_journal,
    journal_option,
    now,
    project_option,
    since_option,
    until_option,
)
from rung.cli.numbers import COUNT
from rung.cli.output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.store.journal.journal import Journal
    from rung.store.queries.reports_rows import TrendPoint
    from rung.store.queries.reports_sql import ReportFilter

AXES: Final = ("kind", "model", "project", "day", "hour", "tool", "prompt", "pattern")
OVERVIEW_ROWS: Final = 3  # rows per table of the overview, except for the kinds
MAX_HOURLY_SECONDS: Final = 3 * 86_400  # longer time ranges have a daily trend
JSON_DIGITS: Final = 9  # of numbers in JSON and CSV: hides floating-point noise
DERIVED_PROPERTIES: Final = ("rate", "dollars_each", "is_met")  # row properties that JSON and CSV include


class Report(NamedTuple):
    """Rows of a report by part, and its trends over time, if it has any."""

    parts: Mapping[str, Sequence[Any]]
    trend: Mapping[str, Sequence[TrendPoint]] = {}


@click.command(
    epilog=epilogue(
        table=(
            "overview  totals, frequent failures, best rungs (default)",
            "failures  failures and attempts, by kind or --by",
            "success   the four success figures",
            "recovery  outcomes by kind; time to recovery by rung",
            "rungs     recoveries and cost by rung, prompt and model",
            "messages  most frequent error messages, with examples",
            "models    failures, latency and cost by model",
            "latency   duration of attempts by model: p50, p95, p99",
            "spirals   sessions that repeat the same failure",
        ),
        examples=("rung report", "rung report failures --by model --since 7d", "rung report rungs --csv > rungs.csv"),
    )
)
@click.argument("name", default="overview", metavar="[NAME]")
@click.option(
    "--by",
    type=click.Choice(AXES),
    help="Group `failures` by this; prompt: the recovery prompt, pattern: the start of the caller's prompt.  [default: kind]",
)
@since_option
@until_option
@project_option
@click.option("--model", metavar="NAME", shell_complete=complete_model, help="Only this model (default: all).")
@click.option("--kind", metavar="KIND", shell_complete=complete_kind, help="Only this kind of failure (default: all).")
@click.option("--session", metavar="ID", help="Only this session (default: all).")
@click.option("--limit", "-n", type=COUNT, metavar="N", help="Maximum number of rows (default: 20).")
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@journal_option
@json_option
def command(
    name: str, *, by: str | None, limit: int | None, as_csv: bool, journal_at: str | None, as_json: bool, **filters: Any
) -> None:
    """Report what fails, how often, and which rungs fix it. NAME is one of the reports below."""
    from rung.store.queries.reports_sql import GroupBy, ReportFilter

    if name not in REPORTS:
        from rung.core.domain.errors import ConfigError
        from rung.core.domain.settings_schema import suggest_names

        raise ConfigError("report", name, f"one of {', '.join(REPORTS)}{suggest_names(name, REPORTS)}")
    if by is not None and name != "failures":
        raise click.UsageError("--by only applies to `rung report failures`")
    where = ReportFilter(**filters, limit=limit or 20)
    with existing_journal(journal_at) as journal:
        report = REPORTS[name](journal, where, GroupBy(by or "kind"))
    if as_json:
        parts = {
            part: [_row_to_dict(row) for row in _limit_rows(rows, limit, by)] for part, rows in report.parts.items()
        }
        print_json({"report": name, "filter": _given_filters(filters), **parts})
    elif as_csv:
        _print_csv(_limit_rows(next(iter(report.parts.values())), limit, by))
    else:
        from rung.cli.journal.report_tables import ReportPage

        ReportPage(where).show(name, report, by or "kind")


def _overview(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries import reports as r
    from rung.store.queries.reports_sql import GroupBy, ReportPart

    parts: dict[str, Sequence[Any]] = {
        "totals": [r.totals(journal, where)],
        "success": _success(journal, where, None).parts["rows"],
        "kinds": r.failures(journal, where, GroupBy.KIND)[:5],
        "models": r.failures(journal, where, GroupBy.MODEL)[:OVERVIEW_ROWS],
        "rungs": r.rung_effects(journal, where, (ReportPart.RUNG,)),
        "messages": r.messages(journal, where, now=now())[:OVERVIEW_ROWS],
    }
    return Report(parts, r.trend(journal, where, hourly=_is_hourly(where)))


def _failures(journal: Journal, where: ReportFilter, by: Any) -> Report:
    from rung.store.queries import reports as r
    from rung.store.queries.reports_sql import GroupBy

    rows = r.failures(journal, where, by)
    timed = by in {GroupBy.KIND, GroupBy.MODEL, GroupBy.PROJECT, GroupBy.TOOL}
    return Report({"rows": rows}, r.trend(journal, where, by, hourly=_is_hourly(where)) if timed else {})


def _success(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.success_figures import success_figures

    return Report({"rows": success_figures(journal, where, now=now())})


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
    return Report(parts, r.trend(journal, where, GroupBy.MODEL, hourly=_is_hourly(where)))


def _latency(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.reports import latency

    return Report({"rows": latency(journal, where)})


def _spirals(journal: Journal, where: ReportFilter, _: Any) -> Report:
    from rung.store.queries.stuck_sessions import stuck_sessions

    return Report({"rows": stuck_sessions(journal, where)})


REPORTS: Final[Mapping[str, Callable[[Journal, ReportFilter, Any], Report]]] = {
    "overview": _overview,
    "failures": _failures,
    "success": _success,
    "recovery": _recovery,
    "rungs": _rungs,
    "messages": _messages,
    "models": _models,
    "latency": _latency,
    "spirals": _spirals,
}


def _is_hourly(where: ReportFilter) -> bool:
    until = where.until if where.until is not None else now()
    return where.since is not None and until - where.since <= MAX_HOURLY_SECONDS


def _given_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}


def _row_to_dict(row: Any) -> dict[str, Any]:
    """Return a row as a dictionary, with its derived properties."""
    table: dict[str, Any] = row._asdict()
    table |= {name: getattr(row, name) for name in DERIVED_PROPERTIES if hasattr(row, name)}
    return {name: round(value, JSON_DIGITS) if isinstance(value, float) else value for name, value in table.items()}


def _limit_rows(rows: Sequence[Any], limit: int | None, by: str | None) -> Sequence[Any]:
    """Return the first `limit` rows; of days and hours, the last."""
    if limit is None:
        return rows
    return rows[-limit:] if by in {"day", "hour"} else rows[:limit]


def _print_csv(rows: Sequence[Any]) -> None:
    """Print the first part as CSV; cells are escaped against formula injection."""
    import csv
    import sys

    from rung.store.journal.export import escape_cell

    tables = [_row_to_dict(row) for row in rows]
    if tables:
        writer = csv.DictWriter(sys.stdout, list(tables[0]))
        writer.writeheader()
        writer.writerows({name: escape_cell(value) for name, value in table.items()} for table in tables)
