"""Duration of every report over a large journal: `python -m bench.journal.reports [--quick | --big]`.

Generates a block of realistic incidents over 90 days (three projects, six models, a session per 25 incidents; 70 %
succeed at once, the rest fail in one of 900 ways by Zipf's law and use up to three rungs) as events, and projects it
with the journal's own code. The block is then copied, each time some days later and with other ids, until the
requested number of events is reached: rows are copied and counts added, as if each copy had been projected. The event
table only holds the first block, because no report reads it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from itertools import count
from pathlib import Path
from time import perf_counter, process_time, time
from typing import TYPE_CHECKING, Any

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.store import open_journal
from rung.store.queries import listing, reports
from rung.store.queries.groups import groups
from rung.store.queries.kpis import top_error_messages
from rung.store.queries.remedies import what_worked
from rung.store.queries.reports_sql import GroupBy, ReportFilter, ReportPart
from rung.store.queries.stuck_sessions import stuck_sessions
from rung.store.queries.success_figures import success_by_day, success_figures
from rung.store.read_models.batch import COUNTS, DAY_SECONDS, KEYS, ROWS, on_conflict
from rung.store.read_models.projector import SequencedEvent, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rung.store.journal.journal import Journal

    Ask = Callable[[Journal], object]

DAYS = 90
ROUNDS = 5
GOALS = {1_000_000: 100, 10_000_000: 120}  # milliseconds
MAX_LIST_EVENTS = 1_000_000  # events; larger journals have no goal for lists
LISTS = ("sessions", "incidents")
PROJECTS = ("web", "api", "research")
MODELS = ("haiku", "sonnet", "opus", "gpt-mini", "gpt-large", "gemini")
KINDS = (
    Kind.RATE_LIMIT, Kind.OVERLOADED, Kind.TIMEOUT, Kind.NETWORK, Kind.SERVER_ERROR, Kind.CONTEXT_LIMIT, Kind.TOOL_ERROR,
    Kind.MALFORMED_OUTPUT, Kind.PARTIAL_OUTPUT, Kind.TEST_FAILURE, Kind.LOOP_DETECTED, Kind.UNKNOWN,
)  # fmt: skip
RUNGS = ("retry", "nudge", "replan", "fallback", "force-done")
PATTERNS = tuple(f"{verb} the {noun} of" for verb in ("Write", "Mend", "Test", "Explain", "Review") for noun in (
    "parser", "index", "report", "page", "query", "lexer", "cache", "client", "server", "ladder", "form", "table",
    "chart", "store", "queue", "worker", "planner", "router", "schema", "guide",
))  # fmt: skip
PROMPTS = ("nudge.general", "nudge.missing", "nudge.format")


# -- events ---------------------------------------------------------------------------------------------


def failures(chance: random.Random) -> list[Failure]:
    """Return 900 different failures, each with its own fingerprint."""
    made = []
    for number in range(900):
        kind = chance.choice(KINDS)
        phase = Phase.TOOL if kind in {Kind.TOOL_ERROR, Kind.TEST_FAILURE} else Phase.CALL
        text = (
            f"{kind} in {'abcdefghijklmnopqrstuvwxyz'[number % 26]}{chance.choice(RUNGS)}{chr(97 + number // 26)}: no"
        )
        made.append(Failure(kind, True, "bench", text, None, Evidence(text=text, phase=phase)))
    return made


def block(size: int, origin: float) -> Iterator[SequencedEvent]:
    """Yield about `size` events in order of time."""
    chance = random.Random(7)
    ways = failures(chance)
    weights = [1 / rank for rank in range(1, len(ways) + 1)]
    requests = {(model, what): Request(prompt=what, model=model) for model in MODELS for what in PATTERNS}
    step = DAYS * DAY_SECONDS / (size / 3.2)  # 3.2 events an incident
    yielded = 0
    for number in count(1):
        if yielded >= size:
            return
        at = origin + (number * step) % (DAYS * DAY_SECONDS)
        session = f"s{number // 25}"
        project, model = PROJECTS[number // 25 % 3], chance.choices(MODELS, (30, 25, 5, 20, 10, 10))[0]
        for n, event in enumerate(
            _incident(
                chance,
                f"b-{number}",
                at,
                project,
                session,
                requests[model, PATTERNS[number * 7 % len(PATTERNS)]],
                ways,
                weights,
            )
        ):
            yielded += 1
            yield SequencedEvent(f"b-{number}", n, event)


def _incident(
    chance: random.Random, name: str, at: float, project: str, session: str, request: Request, ways: Any, weights: Any
) -> Iterator[ev.Event]:
    yield ev.Opened(
        at, name, ev.IncidentContext("task", "default", rungs=RUNGS, project=project, session=session), request
    )
    bad = 0 if chance.random() < 0.7 else chance.choices((1, 2, 3, 8), (60, 20, 15, 5))[0]
    way = chance.choices(ways, weights)[0] if bad else None
    for number in range(bad):
        assert way is not None
        took = chance.lognormvariate(0.5, 0.8)
        at += took
        yield ev.AttemptFailed(at, way, took, 0.01, may_retry=True)
        if number == 7:
            yield ev.Closed(at, ev.Status.PARTIAL, "spent")
            return
        if number < 2:
            yield ev.Decided(at, ev.Repeat(0, 1.0, way.kind.value))
            at += 1.0
        elif number < 6:
            prompt = chance.choice(PROMPTS)
            request = request.replace(recovery=str(number), prompt=f"{request.prompt} {number}")
            yield ev.Decided(at, ev.Change(1, Action.NUDGE, 0.0, way.kind.value))
            yield ev.Changed(at, request, request.digest(), ("prompt",), prompt)
        else:
            request = request.replace(model="opus", recovery="take over")
            yield ev.Decided(at, ev.HandOver(3, "opus", "", 0.5, way.kind.value))
            yield ev.Changed(at, request, request.digest(), ("model",), "handover.context")
    took = chance.lognormvariate(1.0, 0.8)
    yield ev.AttemptSucceeded(at + took, took, 0.02)


# -- the journal ----------------------------------------------------------------------------------------


def generate(path: Path, size: int, origin: float) -> tuple[Journal, int]:
    """Return a journal with rows and counts of about `size` events, and the exact number."""
    journal = open_journal(path)
    piece = min(size, 250_000)
    events = list(block(piece, origin))
    copies = max(1, round(size / len(events)))
    connection = journal.backend.connect(write=True)
    connection.execute("PRAGMA journal_mode=MEMORY")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=-500000")
    connection.begin()
    replay(events, lambda *_: None).write(connection)
    for table in (*ROWS, *COUNTS, "session", "failure_group"):
        connection.execute(f"CREATE TEMP TABLE base_{table} AS SELECT * FROM main.{table}")
    indexes = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    for name, _ in indexes:  # recreated at the end, which is a hundred times faster
        connection.execute(f"DROP INDEX {name}")
    for copy in range(1, copies):
        _copy_block(connection, copy, int(origin // DAY_SECONDS))
    for _, made in indexes:
        connection.execute(made)
    connection.commit()
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return journal, len(events) * copies


TIME_COLUMNS = (
    "at", "opened_at", "ended_at", "failed_at", "touched_at", "began_at", "answered_at", "first_at", "last_at",
    "entered_at", "left_at", "due_at", "tried_at",
)  # fmt: skip


def _copy_block(connection: Any, copy: int, first_day: int) -> None:
    """Copy the block, `copy` days later; what exceeds the 90 days wraps around."""

    def later(column: str, unit: int) -> str:
        begin = first_day * DAY_SECONDS // unit
        period, shift = DAYS * DAY_SECONDS // unit, copy * DAY_SECONDS // unit
        # Subtracts whole periods, because a floating-point remainder would lose the fraction.
        return f"{column} + {shift} - {period} * (CAST({column} - {begin} + {shift} AS INTEGER) / {period})"

    def value(table: str, column: str) -> str:
        if column in TIME_COLUMNS:
            return later(column, 1)
        if column in {"day", "hour"}:
            return later(column, DAY_SECONDS if column == "day" else 3_600)
        if (column in {"incident", "session"} and table != "request") or (column == "id" and table != "project"):
            return f"CASE WHEN {column} = '' THEN '' ELSE {column} || '/{copy}' END"
        return column

    for table in ("incident", "attempt", "model_change", "level", "session"):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        wanted = ", ".join(value(table, column) for column in columns)
        connection.execute(f"INSERT INTO {table} SELECT {wanted} FROM base_{table}")
    for table, counts in COUNTS.items():
        columns = [*KEYS[table], *counts]
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(value(table, c) for c in columns)}"
            f" FROM base_{table} WHERE true{on_conflict(table)}"
        )
    connection.execute("UPDATE failure_group SET count = failure_group.count + b.count FROM base_failure_group b"
                       " WHERE b.project = failure_group.project AND b.fingerprint = failure_group.fingerprint")  # fmt: skip


# -- the questions --------------------------------------------------------------------------------------


def questions(now: float) -> dict[str, Ask]:
    """Return every report with its query, over all 90 days and over the last 30."""
    everything, month, week, day = (
        ReportFilter(),
        *(ReportFilter(since=now - days * DAY_SECONDS) for days in (30, 7, 1)),
    )
    one = ReportFilter(project="web")
    asked: dict[str, Ask] = {
        "totals": lambda j: reports.totals(j, everything),
        **{f"failures by {by}": _by(by, everything) for by in GroupBy if by is not GroupBy.HOUR},
        "failures by hour, 7 days": _by(GroupBy.HOUR, week),
        "failures by model, 30 days": lambda j: reports.failures(j, month, GroupBy.MODEL),
        "failures by kind, 1 day": lambda j: reports.failures(j, day, GroupBy.KIND),
        "failures by kind, 1 project": lambda j: reports.failures(j, one, GroupBy.KIND),
        "trend by model": lambda j: reports.trend(j, everything, GroupBy.MODEL),
        "messages": lambda j: reports.messages(j, everything, now=now),
        "messages, 30 days": lambda j: reports.messages(j, month, now=now),
        "recovery by kind": lambda j: reports.recovery(j, everything),
        "recovery by rung": lambda j: reports.recovery_by_rung(j, everything),
        "recovery by rung, 1 project": lambda j: reports.recovery_by_rung(j, one),
        "rungs, prompts and models": lambda j: reports.rung_effects(j, everything),
        "rungs, 30 days": lambda j: reports.rung_effects(j, month, (ReportPart.RUNG,)),
        "latency": lambda j: reports.latency(j, everything),
        "latency, 30 days": lambda j: reports.latency(j, month),
        "spirals": lambda j: stuck_sessions(j, everything),
        "spirals, 30 days": lambda j: stuck_sessions(j, month),
        "groups": lambda j: groups(j, now=now),
        "success figures": lambda j: success_figures(j, month, now=now),
        "success figures by day": lambda j: success_by_day(j, month),
        "top messages": lambda j: top_error_messages(j, month, now=now),
        "hint of the commonest failure": _hint,
        "sessions": listing.sessions,
        "sessions, dearest": lambda j: listing.sessions(j, sort=listing.SessionSort.DOLLARS),
        "sessions, 1 project": lambda j: listing.sessions(j, project="web"),
        "sessions, 1 status": lambda j: listing.sessions(j, status="partial"),
        "sessions, 1 model": lambda j: listing.sessions(j, model="opus"),
        "sessions, a text": lambda j: listing.sessions(j, text="overloaded"),
        "sessions, a text nowhere": lambda j: listing.sessions(j, text="nowhere at all"),
        "sessions, page 100": lambda j: _page(j, listing.sessions),
        "one session's attempts": lambda j: listing.attempts(j, session="s17"),
        "one session's incidents": lambda j: listing.incidents(j, session="s17"),
        "one session's hand-overs": lambda j: listing.model_changes(j, session="s17"),
        "incidents": listing.incidents,
        "incidents, every call": lambda j: listing.incidents(j, troubled=False),
        "incidents, dearest": lambda j: listing.incidents(j, sort=listing.IncidentSort.DOLLARS),
        "incidents, most attempts": lambda j: listing.incidents(j, sort=listing.IncidentSort.ATTEMPTS),
        "incidents, 1 project": lambda j: listing.incidents(j, project="web"),
        "incidents, 1 status": lambda j: listing.incidents(j, status="partial"),
        "incidents, a rare status": lambda j: listing.incidents(j, status="blocked"),
        "incidents, 1 model": lambda j: listing.incidents(j, model="opus"),
        "incidents, model nowhere": lambda j: listing.incidents(j, model="nobody's"),
        "incidents, kind": lambda j: listing.incidents(j, kind="timeout"),
        "incidents, a text": lambda j: listing.incidents(j, text="overloaded"),
        "incidents, a rare text": lambda j: listing.incidents(j, text="in zreplanh"),
        "incidents, a text nowhere": lambda j: listing.incidents(j, text="nowhere at all"),
        "pending asks": listing.asks,
        "projects": listing.projects,
        "failures of one session": lambda j: reports.failures(j, ReportFilter(session="s17"), GroupBy.KIND),
        "recovery of one session": lambda j: reports.recovery(j, ReportFilter(session="s17")),
    }
    return asked


def _hint(journal: Journal) -> object:
    row = journal.read("SELECT project, fingerprint FROM failure_group ORDER BY count DESC LIMIT 1")[0]
    return what_worked(journal, *row)


def _page(journal: Journal, fetch: Callable[..., Any]) -> object:
    """Fetch a page deep in the list."""
    mark = _MARKS.get(journal.backend.url)
    if mark is None:
        mark = ""
        for _ in range(100):
            mark = fetch(journal, after=mark).after or mark
        _MARKS[journal.backend.url] = mark
    return fetch(journal, after=mark)


_MARKS: dict[str, str] = {}


def _by(by: GroupBy, where: ReportFilter) -> Ask:
    return lambda journal: reports.failures(journal, where, by)


def measure(journal: Journal, ask: Ask) -> tuple[float, float]:
    """Return elapsed and CPU milliseconds: the best of some rounds, which is the least disturbed."""
    times = []
    for _ in range(ROUNDS):
        began, used = perf_counter(), process_time()
        ask(journal)
        times.append((perf_counter() - began, process_time() - used))
    return min(clock for clock, _ in times) * 1_000, min(used for _, used in times) * 1_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50,000 events, as a smoke test")
    parser.add_argument("--big", action="store_true", help="also run with 10 million events")
    parser.add_argument("--keep", type=Path, help="directory in which to keep the journals")
    options = parser.parse_args()
    sizes = [50_000] if options.quick else [1_000_000, *([10_000_000] if options.big else [])]
    now = float(int(time() // DAY_SECONDS) * DAY_SECONDS)
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            path = (options.keep or Path(temporary)) / f"journal-{size}.db"
            began = perf_counter()
            journal, events = generate(path, size, now - DAYS * DAY_SECONDS)
            made = perf_counter() - began
            goal = GOALS.get(size, 100)
            rows = {
                t: journal.read(f"SELECT count(*) FROM {t}")[0][0] for t in ("incident", "attempt", "session", *COUNTS)
            }
            print(f"\n{events:,} events' worth, made in {made:.0f} s, {journal.backend.size() / 1e6:,.0f} MB")
            print("rows: " + ", ".join(f"{name} {number:,}" for name, number in rows.items()))
            began = perf_counter()
            open_journal(path).close()
            print(f"to open it: {(perf_counter() - began) * 1_000:,.0f} ms\n")
            print(f"{'report':<30}{'ms':>9}{'cpu ms':>9}{'goal':>7}  met")
            for name, ask in questions(now).items():
                took, used = measure(journal, ask)
                judged = size <= MAX_LIST_EVENTS or not name.startswith(LISTS)
                missed += judged and took > goal
                met = ("yes" if took <= goal else "NO") if judged else "(a list: no goal)"
                print(f"{name:<30}{took:>9.1f}{used:>9.1f}{goal:>7}  {met}", flush=True)
            journal.close()
    print(f"\n{'every goal met' if not missed else f'{missed} goals missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
