"""Reports on the terminal: tables that fit 80 columns, with sparklines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.table import Table
from rich.text import Text

from rung.cli.output import pluralize
from rung.cli.terminal import console
from rung.core.domain.failures import first_line
from rung.core.text.units import NO_VALUE, format_dollars, format_duration, format_percent, format_time
from rung.store.read_models.batch import DAY_SECONDS, HOUR_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rung.cli.journal.report import Report
    from rung.store.queries.reports_rows import MessageCountRow, Rate, Totals, TrendPoint
    from rung.store.queries.reports_sql import ReportFilter
    from rung.store.queries.success_figures import SuccessFigure

BLOCKS: Final = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS: Final = " .:-=+*#@"
SPARKLINE_CELLS: Final = 14
MAX_SPACED_COLUMNS: Final = 7  # wider tables have a narrower gap between columns
STATE_STYLES: Final = {"open": "", "resolved": "green", "snoozed": "dim", "regression": "red"}


class ReportPage:
    """Prints one report."""

    def __init__(self, where: ReportFilter) -> None:
        self.where = where
        self.screen = console()
        self.blocks = ASCII_BLOCKS if self.screen.options.ascii_only else BLOCKS

    def show(self, name: str, report: Report, by: str) -> None:
        """Print a report, or a text if it has no rows."""
        rows = next(iter(report.parts.values()))
        self.print_heading(f"{name}{f' by {by}' if name == 'failures' else ''}", self.filter_text(), style="bold")
        is_empty = not rows or (name == "overview" and not rows[0].attempts)
        is_empty = is_empty or (name == "success" and not any(row.numerator or row.denominator for row in rows))
        if is_empty:
            self.screen.print(EMPTY_TEXTS.get(name, "  No events in this time range."))
            return
        printers: Mapping[str, Callable[[Report, str], None]] = {
            "overview": self.overview,
            "failures": self.failures,
            "success": lambda report, _: self.success(report.parts["rows"]),
            "recovery": self.recovery,
            "rungs": self.rungs,
            "messages": lambda report, _: self.messages(report.parts["rows"]),
            "models": self.models,
            "latency": self.latency,
            "spirals": self.spirals,
        }
        printers[name](report, by)

    def filter_text(self) -> str:
        """Return the filter of the report as text."""
        where = self.where
        parts = [
            f"{name} {value}" for name in ("project", "model", "kind", "session") if (value := getattr(where, name))
        ]
        if where.since is not None:
            parts.append(f"since {format_time(where.since, to='minutes')}")
        if where.until is not None:
            parts.append(f"until {format_time(where.until, to='minutes')}")
        return ", ".join(parts) or "all time"

    def print_heading(self, title: str, rest: str = "", style: str = "bold") -> None:
        """Print a heading."""
        self.screen.print(Text(title, style).append(f"  {rest}" if rest else "", "dim not bold"))

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table. A column whose name begins with > is right-aligned; long text in others is folded."""
        gap = 1 if len(columns) > MAX_SPACED_COLUMNS else 2
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
        for name in columns:
            right = name.startswith(">")
            table.add_column(name.lstrip(">"), justify="right" if right else "left", overflow="fold", no_wrap=right)
        for row in rows:
            table.add_row(*row)
        self.screen.print(table)

    def overview(self, report: Report, _: str) -> None:
        """Print totals, the most frequent failures and the best rungs."""
        totals: Totals = report.parts["totals"][0]
        line = sparkline(report.trend.get("", ()), self.blocks, _span(report.trend))
        good = totals.recovered / totals.troubled if totals.troubled else None
        alone = totals.auto_recovered / totals.troubled if totals.troubled else None
        rate = totals.failures / totals.attempts
        mean = format_duration(totals.mean_seconds)
        facts = [
            ("attempts", f"{totals.attempts:,}, of which {totals.failures:,} failed ({format_percent(rate)})  {line}"),
            ("incidents", f"{totals.incidents:,}, of which {totals.troubled:,} had a failure"),
            ("recovered", f"{totals.recovered:,} ({format_percent(good)}) in {mean} on average"),
            ("automatic", f"{totals.auto_recovered:,} ({format_percent(alone)}) without an operator"),
            ("otherwise", f"{totals.partial:,} partial, {totals.blocked:,} blocked, {totals.failed:,} failed"),
            ("operators", f"{pluralize(totals.asks, 'question')} asked"),
            ("hand-overs", f"{totals.escalations:,} to another model or agent"),
            ("cost", format_dollars(totals.dollars)),
        ]
        for label, text in facts:
            self.screen.print(Text(f"  {label:<11}", "dim").append(text, "not dim"))
        self.screen.print()
        self.success(report.parts["success"])
        for title, kinds in (("Failures", "kinds"), ("Models", "models")):
            if rows := [rate for rate in report.parts[kinds] if rate.failures or kinds == "models"]:
                self.screen.print()
                self.print_heading(title)
                self.print_table(("", ">failures", ">of attempts", ">rate"), [_rate_cells(row) for row in rows])
        if rungs := report.parts["rungs"]:
            self.screen.print()
            self.print_heading("Rungs")
            cells = [
                (r.rung, f"{r.saved:,}", f"{r.tried:,}", format_percent(r.saved / r.tried), format_dollars(r.dollars))
                for r in rungs
            ]
            self.print_table(("", ">saved", ">of tries", ">rate", ">cost"), cells)
        if report.parts["messages"]:
            self.screen.print()
            self.print_heading("Most frequent messages")
            self.messages(report.parts["messages"])

    def failures(self, report: Report, by: str) -> None:
        """Print failures and attempts per group."""
        rows: Sequence[Rate] = report.parts["rows"]
        shown = rows[-self.where.limit :] if by in {"day", "hour"} else rows[: self.where.limit]
        span = _span(report.trend)
        over = span is not None
        lines = (
            (
                *_rate_cells(row),
                format_dollars(row.dollars),
                *([sparkline(report.trend.get(row.key, ()), self.blocks, span)] * over),
            )
            for row in shown
        )
        self.print_table((by, ">failures", ">of attempts", ">rate", ">cost", *(["failures over time"] * over)), lines)
        self.print_omitted(rows, shown)

    def success(self, rows: Sequence[SuccessFigure]) -> None:
        """Print the four success figures, each with its numerator, its denominator and its goal."""
        self.print_heading("Success")
        self.print_table(("", ">value", ""), [_success_cells(row) for row in rows])

    def recovery(self, report: Report, _: str) -> None:
        """Print outcomes by kind, and the time to recovery by rung."""
        rows = report.parts["rows"]
        self.print_table(
            ("began with", ">recovered", ">of", ">rate", ">partial", ">blocked", ">failed", ">mean"),
            [
                (r.kind, f"{r.recovered:,}", f"{r.incidents:,}", format_percent(r.rate), f"{r.partial:,}", f"{r.blocked:,}",
                 f"{r.failed:,}", format_duration(r.mean_seconds))
                for r in rows[: self.where.limit]
            ],
        )  # fmt: skip
        self.print_omitted(rows, rows[: self.where.limit])
        if rungs := report.parts["rungs"]:
            self.screen.print()
            self.print_table(
                ("last rung", ">saved", ">of tries", ">rate", ">mean"),
                [
                    (
                        r.rung,
                        f"{r.saved:,}",
                        f"{r.tried:,}",
                        format_percent(r.saved / r.tried),
                        format_duration(r.mean_seconds),
                    )
                    for r in rungs
                ],
            )
            self.screen.print("mean: time from the first failure to the recovery", style="dim")

    def rungs(self, report: Report, _: str) -> None:
        """Print recoveries and cost by rung, prompt and model."""
        rows = report.parts["rows"]
        shown = rows[: self.where.limit]
        self.print_table(
            ("rung", "prompt", "model", ">saved", ">of tries", ">rate", ">cost", ">each"),
            [
                (r.rung, r.prompt or NO_VALUE, r.model or NO_VALUE, f"{r.saved:,}", f"{r.tried:,}",
                 format_percent(r.saved / r.tried), format_dollars(r.dollars), format_dollars(r.dollars_each))
                for r in shown
            ],
        )  # fmt: skip
        self.print_omitted(rows, shown)

    def messages(self, rows: Sequence[MessageCountRow]) -> None:
        """Print error messages, each with its count, fingerprint and an example."""
        for row in rows:
            head = Text(f"{row.seen:>7,} ", "bold").append(f"{format_percent(row.share):>7}  ", "not bold")
            head.append(f"{row.kind}  ", "cyan not bold").append(row.state.value, STATE_STYLES[row.state] or "not bold")
            projects = ", ".join(filter(None, row.projects))
            head.append(f"  {projects}" if projects else "", "dim not bold")
            self.screen.print(head)
            self.print_line(first_line(row.message) or "(no message)")
            self.print_line(f"{row.fingerprint}  {_time_range(row.first_at, row.last_at)}  e.g. {row.example}", "dim")

    def models(self, report: Report, _: str) -> None:
        """Print failures, latency, recoveries and cost by model."""
        times = {row.model: row for row in report.parts["latency"]}
        saved = {row.model: row.saved for row in report.parts["rescues"]}
        rows = report.parts["rows"]
        shown = rows[: self.where.limit]
        span = _span(report.trend)
        cells = []
        for row in shown:
            latency = times.get(row.key)
            quick = (
                [format_duration(latency.p50), format_duration(latency.p95)]
                if latency is not None
                else [NO_VALUE, NO_VALUE]
            )
            line = sparkline(report.trend.get(row.key, ()), self.blocks, span, cells=7)
            amounts = (f"{row.attempts:,}", f"{row.failures:,}", format_percent(row.rate), *quick)
            cells.append(
                (row.key or NO_VALUE, *amounts, f"{saved.get(row.key, 0):,}", format_dollars(row.dollars), line)
            )
        self.print_table(("model", ">attempts", ">failed", ">rate", ">p50", ">p95", ">saved", ">cost", "failed"), cells)
        self.print_omitted(rows, shown)

    def latency(self, report: Report, _: str) -> None:
        """Print percentiles of the duration of attempts."""
        rows = report.parts["rows"]
        shown = rows[: self.where.limit]
        self.print_table(
            ("model", ">attempts", ">p50", ">p95", ">p99"),
            [
                (
                    r.model or NO_VALUE,
                    f"{r.attempts:,}",
                    format_duration(r.p50),
                    format_duration(r.p95),
                    format_duration(r.p99),
                )
                for r in shown
            ],
        )
        self.print_omitted(rows, shown)
        self.screen.print("percentiles are accurate to 9 %", style="dim")

    def spirals(self, report: Report, _: str) -> None:
        """Print the sessions that repeat the same failure, the worst first."""
        for row in report.parts["rows"]:
            head = Text(f"{row.score:>6.1f}  ", "bold red").append(row.session, "bold not red")
            head.append(f"  {row.project}" if row.project else "", "dim not bold")
            self.screen.print(head)
            self.print_line(f"{row.kind}: {first_line(row.message)}")
            self.print_line(
                f"{pluralize(row.repeats, 'time')} in {pluralize(row.attempts, 'attempt')}: {format_duration(row.seconds)}, {format_dollars(row.dollars)};"
                f" last {format_time(row.last_at, to='minutes')}",
                "dim",
            )
        self.screen.print("score: repetitions of the same failure per 100 attempts", style="dim")

    def print_line(self, text: str, style: str = "") -> None:
        """Print one indented line, cut at the width of the terminal."""
        self.screen.print(Text(f"{'':8}{text}", style), no_wrap=True, overflow="ellipsis")

    def print_omitted(self, rows: Sequence[Any], shown: Sequence[Any]) -> None:
        """Print how many rows are not shown."""
        if len(shown) < len(rows):
            self.screen.print(f"and {len(rows) - len(shown):,} more: --limit {len(rows)}", style="dim")


EMPTY_TEXTS: Final = {
    "spirals": "  No session has the same failure three times. (Sessions are identified by `Session(id=…)`.)",
    "messages": "  No failures in this time range.",
    "recovery": "  No failures in this time range.",
    "rungs": "  No rung was used in this time range.",
}


class TimeSpan(NamedTuple):
    """Time range of a sparkline, and the duration of each point."""

    first: float
    end: float
    period: float


def sparkline(points: Sequence[TrendPoint], blocks: str, span: TimeSpan | None, cells: int = SPARKLINE_CELLS) -> str:
    """Return failures over time as a line of blocks; the maximum is the tallest."""
    if span is None or not points:
        return ""
    cells = min(cells, round((span.end - span.first) / span.period))
    sums = [0] * cells
    for point in points:
        sums[int((point.at - span.first) / (span.end - span.first) * cells)] += point.failures
    top = max(sums)
    return "".join(blocks[0 if not amount else max(1, round(amount / top * (len(blocks) - 1)))] for amount in sums)


def _span(trend: Mapping[str, Sequence[TrendPoint]]) -> TimeSpan | None:
    """Return the time range of a trend; None if it has fewer than two points in time."""
    times = [point.at for points in trend.values() for point in points]
    if not times or min(times) == max(times):
        return None
    period = DAY_SECONDS if all(at % DAY_SECONDS == 0 for at in times) else HOUR_SECONDS
    return TimeSpan(min(times), max(times) + period, period)


def _time_range(first: float, last: float) -> str:
    """Return a time range as text; the date is printed once if both ends share it."""
    one, other = format_time(first, to="minutes"), format_time(last, to="minutes")
    if one == other:
        return one
    date = one.split(" ")[0]
    return f"{one} to {other.removeprefix(f'{date} ')}"


def _success_cells(row: SuccessFigure) -> tuple[str, str, str]:
    label, value, goal = SUCCESS_TEXTS[row.figure.value]
    met = {True: ": met", False: ": not met", None: ""}[row.is_met]
    return label, value(row.value), f"{_share_text(row)}; goal {goal}{met}"


def _share_text(row: SuccessFigure) -> str:
    """Return the numerator and the denominator of a success figure, and how it compares with the period before."""
    if row.figure.value == "meanTimeToRecovery":
        return f"of {row.denominator:,} recovered"
    if row.figure.value != "manualInterventions":
        return f"{row.numerator:,.0f} of {row.denominator:,}"
    rate = "" if row.per_100_sessions is None else f", {row.per_100_sessions:.1f} per 100"
    before = "" if row.before is None else f"; {row.before:,} before"
    if row.reduction is not None:
        before += f", {format_percent(abs(row.reduction))} {'fewer' if row.reduction >= 0 else 'more'}"
    return f"in {row.denominator:,} sessions{rate}{before}"


SUCCESS_TEXTS: Final[Mapping[str, tuple[str, Callable[[float | None], str], str]]] = {
    "autoRecovered": ("transient recovered", format_percent, "70 % or more"),
    "manualInterventions": ("manual restarts", lambda value: f"{value or 0:,.0f}", "50 % fewer"),
    "stuckEscalated": ("stuck escalated", format_percent, "30 % or more"),
    "meanTimeToRecovery": ("time to recovery", format_duration, "under 30 s"),
}


def _rate_cells(row: Rate) -> tuple[str, str, str, str]:
    return row.key or NO_VALUE, f"{row.failures:,}", f"{row.attempts:,}", format_percent(row.rate)
