"""`rung log`: prints events, one per line, and follows new ones."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import click

from rung.cli.complete_names import complete_kind
from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option, project_option
from rung.cli.output import json_option, json_text
from rung.core.text.units import format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal
    from rung.store.queries.live import LoggedEvent

POLL_SECONDS: Final = 0.5
MAX_CACHED_LADDERS: Final = 10_000  # incidents
MARK_COLOURS: Final = {"bad": "red", "good": "green", "next": "yellow", "climb": "cyan", "note": None, "end": "magenta"}


@click.command(epilog=epilogue(examples=("rung log -n 20", "rung log -f --kind rate_limit")))
@click.option("-f", "--follow", is_flag=True, help="Follow: print new events until Ctrl-C.")
@click.option(
    "--kind",
    metavar="KIND",
    shell_complete=complete_kind,
    help="Only incidents with a failure of this kind (default: all).",
)
@project_option
@click.option("--session", metavar="ID", help="Only this session (default: all).")
@click.option("--limit", "-n", default=50, show_default=True, help="Number of latest events to print; 0 prints none.")
@journal_option
@json_option
def command(*, follow: bool, journal_at: str | None, as_json: bool, limit: int, **filters: str | None) -> None:
    """Print the latest events, one per line; with --json one object per line."""
    from rung.core.domain.failures import Kind

    if filters["kind"] is not None and filters["kind"] not in set(Kind):
        from rung.core.domain.errors import ConfigError
        from rung.core.domain.settings_schema import suggest_names

        raise ConfigError("kind", filters["kind"], f"a kind (`rung explain`){suggest_names(filters['kind'], Kind)}")
    with existing_journal(journal_at) as journal:
        show = _json_line if as_json else _line_printer(journal)
        try:
            _print_events(journal, filters, show, limit=max(0, limit), follow=follow)
        except KeyboardInterrupt:
            sys.exit(0 if follow else 130)


def _print_events(
    journal: Journal, filters: dict[str, str | None], show: Callable[[LoggedEvent], None], *, limit: int, follow: bool
) -> None:
    from time import sleep

    from rung.store.queries.live import events_between, last_event, latest_events

    end = last_event(journal)
    for entry in latest_events(journal, filters, end, limit):
        show(entry)
    while follow:
        sys.stdout.flush()
        sleep(POLL_SECONDS)
        begin, end = end, last_event(journal)
        for entry in events_between(journal, filters, begin, end):
            show(entry)


def _json_line(entry: LoggedEvent) -> None:
    from rung.store.read_models.event_body import shown_event

    place = {"seq": entry.seq, "incident": entry.incident, "n": entry.n}
    click.echo(json_text(place | shown_event(entry.body)))


def _line_printer(journal: Journal) -> Callable[[LoggedEvent], None]:
    """Return a function that prints an event as a line, cut to the terminal's width, under a heading per day."""
    import shutil

    from rung.core.text.event_text import describe_json
    from rung.core.text.progress_line import MARKS
    from rung.store.read_models.event_body import shown_event

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    ladders: OrderedDict[str, tuple[str, ...]] = OrderedDict()
    day = ""

    def show(entry: LoggedEvent) -> None:
        nonlocal day
        date, _, time = format_time(entry.at).partition(" ")
        if date != day:
            day = date
            click.secho(f"── {date} (UTC) ──", dim=True)
        event = describe_json(shown_event(entry.body), _rung_names(journal, entry, ladders), entry.number)
        start = f"{time} {entry.incident:<19.24} "
        rest = f"{event.subject:<12} {event.text}{f' ({event.time})' if event.time else ''}"
        if width is not None and len(start) + 2 + len(rest) > width:
            rest = rest[: width - len(start) - 3] + "…"
        sign = click.style(MARKS[event.mark][0], fg=MARK_COLOURS[event.mark])
        click.echo(f"{click.style(start, dim=True)}{sign} {rest}")

    return show


def _rung_names(journal: Journal, entry: LoggedEvent, cache: OrderedDict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of an incident's rungs, from its first event."""
    from rung.store.queries.incidents import rung_names

    if entry.incident not in cache:
        cache[entry.incident] = rung_names(journal, entry.incident)
        if len(cache) > MAX_CACHED_LADDERS:
            cache.popitem(last=False)
    return cache[entry.incident]
