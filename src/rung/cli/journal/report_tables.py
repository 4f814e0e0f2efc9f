"""Reports on the screen: tables that fit 80 columns, a line over time beside them, and words where nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.table import Table
from rich.text import Text

from rung.cli.output import console, count
from rung.core.domain.failures import first_line
from rung.core.text.units import NOTHING, money, percent, took, when
from rung.store.read_models.batch import DAY_SECONDS, HOUR_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rung.cli.journal.report import Report
    from rung.store.queries.reports_rows import MessageCountRow, Rate, Totals, TrendPoint
    from rung.store.queries.reports_sql import ReportFilter

FINE: Final = " ▁▂▃▄▅▆▇█"
PLAIN: Final = " .:-=+*#@"
CELLS: Final = 14
WIDE: Final = 7  # columns beyond which they stand closer
STATES: Final = {"open": "", "resolved": "green", "snoozed": "dim", "regression": "red"}


class ReportPage:
    """One report, printed."""

    def __init__(self, where: ReportFilter) -> None:
        self.where = where
        self.screen = console()
        self.blocks = PLAIN if self.screen.options.ascii_only else FINE

    def show(self, name: str, found: Report, by: str) -> None:
        """Print it; a report without rows says so."""
        rows = next(iter(found.parts.values()))
        self.say(f"{name}{f' by {by}' if name == 'failures' else ''}", self.asked(), style="bold")
        nothing = not rows or (name == "overview" and not rows[0].attempts)
        if nothing:
            self.screen.print(NONE.get(name, "  Nothing was recorded in that time."))
            return
        shows: Mapping[str, Callable[[Report, str], None]] = {
            "overview": self.overview,
            "failures": self.failures,
            "recovery": self.recovery,
            "rungs": self.rungs,
            "messages": lambda found, _: self.messages(found.parts["rows"]),
            "models": self.models,
            "latency": self.latency,
            "spirals": self.spirals,
        }
        shows[name](found, by)

    def asked(self) -> str:
        """What the report was narrowed to."""
        where = self.where
        parts = [
            f"{name} {value}" for name in ("project", "model", "kind", "session") if (value := getattr(where, name))
        ]
        if where.since is not None:
            parts.append(f"since {when(where.since, to='minutes')}")
        if where.until is not None:
            parts.append(f"until {when(where.until, to='minutes')}")
        return ", ".join(parts) or "all time"

    def say(self, title: str, rest: str = "", style: str = "bold") -> None:
        """A heading."""
        self.screen.print(Text(title, style).append(f"  {rest}" if rest else "", "dim not bold"))

    def grid(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table: a column whose name begins with > is of numbers; what is too long in another is folded."""
        gap = 1 if len(columns) > WIDE else 2
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
        for name in columns:
            right = name.startswith(">")
            table.add_column(name.lstrip(">"), justify="right" if right else "left", overflow="fold", no_wrap=right)
        for row in rows:
            table.add_row(*row)
        self.screen.print(table)

    # -- one report each ------------------------------------------------------------------------------

    def overview(self, found: Report, _: str) -> None:
        """The numbers that matter."""
        totals: Totals = found.parts["totals"][0]
        line = spark(found.trend.get("", ()), self.blocks, _span(found.trend))
        good = totals.recovered / totals.troubled if totals.troubled else None
        alone = totals.auto_recovered / totals.troubled if totals.troubled else None
        rate = totals.failures / totals.attempts
        mean = took(totals.mean_seconds)
        facts = [
            ("attempts", f"{totals.attempts:,}, of which {totals.failures:,} failed ({percent(rate)})  {line}"),
            ("incidents", f"{totals.incidents:,}, of which {totals.troubled:,} had a failure"),
            ("recovered", f"{totals.recovered:,} ({percent(good)}) in {mean} on average"),
            ("by itself", f"{totals.auto_recovered:,} ({percent(alone)}) without asking anybody"),
            ("otherwise", f"{totals.partial:,} partial, {totals.blocked:,} blocked, {totals.failed:,} failed"),
            ("people", f"{count(totals.asks, 'question')} asked"),
            ("hand-overs", f"{totals.escalations:,} to another model or agent"),
            ("cost", money(totals.dollars)),
        ]
        for label, text in facts:
            self.screen.print(Text(f"  {label:<11}", "dim").append(text, "not dim"))
        for title, kinds in (("What fails", "kinds"), ("Models", "models")):
            if rows := [rate for rate in found.parts[kinds] if rate.failures or kinds == "models"]:
                self.screen.print()
                self.say(title)
                self.grid(("", ">failures", ">of attempts", ">rate"), [_rate(row) for row in rows])
        if rungs := found.parts["rungs"]:
            self.screen.print()
            self.say("What helps")
            cells = [
                (r.rung, f"{r.saved:,}", f"{r.tried:,}", percent(r.saved / r.tried), money(r.dollars)) for r in rungs
            ]
            self.grid(("", ">saved", ">of tries", ">rate", ">cost"), cells)
        if found.parts["messages"]:
            self.screen.print()
            self.say("Seen most")
            self.messages(found.parts["messages"])

    def failures(self, found: Report, by: str) -> None:
        """How often, of how many."""
        rows: Sequence[Rate] = found.parts["rows"]
        shown = rows[-self.where.limit :] if by in {"day", "hour"} else rows[: self.where.limit]
        span = _span(found.trend)
        over = span is not None
        lines = (
            (*_rate(row), money(row.dollars), *([spark(found.trend.get(row.key, ()), self.blocks, span)] * over))
            for row in shown
        )
        self.grid((by, ">failures", ">of attempts", ">rate", ">cost", *(["failures over time"] * over)), lines)
        self.rest(rows, shown)

    def recovery(self, found: Report, _: str) -> None:
        """How it ended, and how long that took."""
        rows = found.parts["rows"]
        self.grid(
            ("began with", ">recovered", ">of", ">rate", ">partial", ">blocked", ">failed", ">mean"),
            [
                (r.kind, f"{r.recovered:,}", f"{r.incidents:,}", percent(r.rate), f"{r.partial:,}", f"{r.blocked:,}",
                 f"{r.failed:,}", took(r.mean_seconds))
                for r in rows[: self.where.limit]
            ],
        )  # fmt: skip
        self.rest(rows, rows[: self.where.limit])
        if rungs := found.parts["rungs"]:
            self.screen.print()
            self.grid(
                ("last rung", ">saved", ">of tries", ">rate", ">mean"),
                [
                    (r.rung, f"{r.saved:,}", f"{r.tried:,}", percent(r.saved / r.tried), took(r.mean_seconds))
                    for r in rungs
                ],
            )
            self.screen.print("mean: time from the first failure to the recovery", style="dim")

    def rungs(self, found: Report, _: str) -> None:
        """What saved how many, at what cost."""
        rows = found.parts["rows"]
        shown = rows[: self.where.limit]
        self.grid(
            ("rung", "prompt", "model", ">saved", ">of tries", ">rate", ">cost", ">each"),
            [
                (r.rung, r.prompt or NOTHING, r.model or NOTHING, f"{r.saved:,}", f"{r.tried:,}",
                 percent(r.saved / r.tried), money(r.dollars), money(r.dollars_each))
                for r in shown
            ],
        )  # fmt: skip
        self.rest(rows, shown)

    def messages(self, rows: Sequence[MessageCountRow]) -> None:
        """Each on a few lines: how often, what, and where to look."""
        for row in rows:
            head = Text(f"{row.seen:>7,} ", "bold").append(f"{percent(row.share):>7}  ", "not bold")
            head.append(f"{row.kind}  ", "cyan not bold").append(row.state.value, STATES[row.state] or "not bold")
            head.append(f"  {row.project}" if row.project else "", "dim not bold")
            self.screen.print(head)
            self.line(first_line(row.message) or "(no message)")
            self.line(f"{row.fingerprint}  {_between(row.first_at, row.last_at)}  e.g. {row.example}", "dim")

    def models(self, found: Report, _: str) -> None:
        """Failures, times, cost and rescues side by side."""
        times = {row.model: row for row in found.parts["latency"]}
        saved = {row.model: row.saved for row in found.parts["rescues"]}
        rows = found.parts["rows"]
        shown = rows[: self.where.limit]
        span = _span(found.trend)
        cells = []
        for row in shown:
            latency = times.get(row.key)
            quick = [took(latency.p50), took(latency.p95)] if latency is not None else [NOTHING, NOTHING]
            line = spark(found.trend.get(row.key, ()), self.blocks, span, cells=7)
            amounts = (f"{row.attempts:,}", f"{row.failures:,}", percent(row.rate), *quick)
            cells.append((row.key or NOTHING, *amounts, f"{saved.get(row.key, 0):,}", money(row.dollars), line))
        self.grid(("model", ">attempts", ">failed", ">rate", ">p50", ">p95", ">saved", ">cost", "failed"), cells)
        self.rest(rows, shown)

    def latency(self, found: Report, _: str) -> None:
        """Percentiles."""
        rows = found.parts["rows"]
        shown = rows[: self.where.limit]
        self.grid(
            ("model", ">attempts", ">p50", ">p95", ">p99"),
            [(r.model or NOTHING, f"{r.attempts:,}", took(r.p50), took(r.p95), took(r.p99)) for r in shown],
        )
        self.rest(rows, shown)
        self.screen.print("to within 9 %", style="dim")

    def spirals(self, found: Report, _: str) -> None:
        """The sessions that are stuck, the worst first."""
        for row in found.parts["rows"]:
            head = Text(f"{row.score:>6.1f}  ", "bold red").append(row.session, "bold not red")
            head.append(f"  {row.project}" if row.project else "", "dim not bold")
            self.screen.print(head)
            self.line(f"{row.kind}: {first_line(row.message)}")
            self.line(
                f"{count(row.repeats, 'time')} in {count(row.attempts, 'attempt')}: {took(row.seconds)}, {money(row.dollars)};"
                f" last {when(row.last_at, to='minutes')}",
                "dim",
            )
        self.screen.print("score: of 100 attempts so many were the same failure once more", style="dim")

    def line(self, text: str, style: str = "") -> None:
        """One line under a heading, cut at the edge of the screen."""
        self.screen.print(Text(f"{'':8}{text}", style), no_wrap=True, overflow="ellipsis")

    def rest(self, rows: Sequence[Any], shown: Sequence[Any]) -> None:
        """How many are not shown."""
        if len(shown) < len(rows):
            self.screen.print(f"and {len(rows) - len(shown):,} more: --limit {len(rows)}", style="dim")


NONE: Final = {
    "spirals": "  No session has met the same failure three times. (Sessions are told apart by `Session(id=…)`.)",
    "messages": "  Nothing has failed in that time.",
    "recovery": "  Nothing has failed in that time.",
    "rungs": "  No rung was needed in that time.",
}


class TimeSpan(NamedTuple):
    """The time a line is drawn over, and how long each of its points lasts."""

    first: float
    end: float
    period: float


def spark(points: Sequence[TrendPoint], blocks: str, span: TimeSpan | None, cells: int = CELLS) -> str:
    """Failures over time as a line of blocks, the most as the tallest."""
    if span is None or not points:
        return ""
    cells = min(cells, round((span.end - span.first) / span.period))
    sums = [0] * cells
    for point in points:
        sums[int((point.at - span.first) / (span.end - span.first) * cells)] += point.failures
    top = max(sums)
    return "".join(blocks[0 if not amount else max(1, round(amount / top * (len(blocks) - 1)))] for amount in sums)


def _span(trend: Mapping[str, Sequence[TrendPoint]]) -> TimeSpan | None:
    """All the time there is something of; None for a single moment, of which no line can be drawn."""
    times = [point.at for points in trend.values() for point in points]
    if not times or min(times) == max(times):
        return None
    period = DAY_SECONDS if all(at % DAY_SECONDS == 0 for at in times) else HOUR_SECONDS
    return TimeSpan(min(times), max(times) + period, period)


def _between(first: float, last: float) -> str:
    """From when to when; what both have in common is said once."""
    one, other = when(first, to="minutes"), when(last, to="minutes")
    if one == other:
        return one
    date = one.split(" ")[0]
    return f"{one} to {other.removeprefix(f'{date} ')}"


def _rate(row: Rate) -> tuple[str, str, str, str]:
    return row.key or NOTHING, f"{row.failures:,}", f"{row.attempts:,}", percent(row.rate)
