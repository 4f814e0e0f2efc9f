"""`rung show INCIDENT`: prints one incident from its first failure to its end."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option
from rung.cli.output import json_option, paragraph, pluralize, print_json, print_row
from rung.core.text.units import format_dollars, format_duration, format_percent, format_time

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.text.event_text import EventText
    from rung.store.journal.journal import Journal

LABEL_WIDTH: Final = 9
TIME_WIDTH: Final = 9
SUBJECT_WIDTH: Final = 13
LATEST: Final = "last"
MAX_LISTED_IDS: Final = 5
MARK_COLOURS: Final = {"bad": "red", "good": "green", "next": "yellow", "climb": "cyan", "note": None, "end": "magenta"}


@click.command(epilog=epilogue(examples=("rung show last", "rung show last --json")))
@click.argument("incident", metavar="INCIDENT")
@journal_option
@json_option
def command(incident: str, *, journal_at: str | None, as_json: bool) -> None:
    """Show one INCIDENT: failures, decisions, changes, waits, cost and outcome.

    INCIDENT is an id, a unique prefix of one, or `last`.
    """
    from rung.store.queries.incidents import attempt_numbers, event_bodies, failure_count
    from rung.store.session_usage import session_usage

    with existing_journal(journal_at) as journal:
        record = find_incident(journal, incident)
        bodies = event_bodies(journal, record["id"])
        numbers = attempt_numbers(journal, record["id"])
        seen_before = failure_count(journal, record["project"], record["fingerprint"])
        seen = seen_before._asdict() if seen_before is not None else None
        cache_share = session_usage(journal, record["session"]).cache_share if record["session"] else None
        state = _open_state(journal, record, journal_at) if record["status"] == "open" else ""
    if as_json:
        levels = _levels(record, bodies)
        found = {"incident": record, "seen": seen, "cache_share": cache_share, "levels": levels, "events": bodies}
        print_json(found)
        return
    _print_heading(record, bodies[0] if bodies else {}, cache_share)
    _print_timeline(bodies, numbers)
    _print_ending(record, bodies, seen, state)


def _open_state(journal: Journal, record: dict[str, Any], journal_at: str | None) -> str:
    """Return what an open incident waits for: until when it is parked, and whether a process waits to take it up."""
    from rung.cli.journal.option import now
    from rung.core.domain.incident import Incident
    from rung.core.text.moments import format_moment, format_span

    last = f"last event at {format_time(record['touched_at'])} UTC"
    until = Incident.of(journal.events(record["id"])).parked_until
    if until is None:
        return f"open, {last}"
    left = until - now()
    when = f"in {format_span(left)}" if left > 0 else "which has passed"
    parked = f"parked until {format_moment(until, now())}, {when}"
    run = next((run for run in journal.runs.open_runs() if run.id == record["id"]), None)
    if run is None:  # kept by no process but its own, of which the journal knows nothing
        return f"{parked}; {last}"
    words = ["rung", "resume", *(() if journal_at is None else ("--journal", journal_at)), record["id"]]
    return f"{parked}; " + ("its process waits" if run.owned else f"no process waits: {shlex.join(words)}")


def _levels(record: dict[str, Any], bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the level records of an incident; none if a newer version wrote its events."""
    from rung.core.domain.errors import ConfigError
    from rung.core.domain.event_codec import from_json
    from rung.core.domain.level_record import level_records
    from rung.core.policy.presets import LADDERS

    try:
        return level_records(map(from_json, bodies), LADDERS.get(record["ladder"], LADDERS["task"]))
    except ConfigError:
        return []


def find_incident(journal: Journal, name: str) -> dict[str, Any]:
    """Return the row of the incident whose id has this prefix."""
    from rung.cli.usage import UsageError
    from rung.store.queries.incidents import incidents_named, last_incident

    rows = last_incident(journal) if name == LATEST else incidents_named(journal, name, MAX_LISTED_IDS + 1)
    if len(rows) == 1:
        return rows[0]
    if rows:
        names = ", ".join(str(row["id"]) for row in rows[:MAX_LISTED_IDS]) + (
            " …" if len(rows) > MAX_LISTED_IDS else ""
        )
        raise UsageError(f"{name!r} is not the id of one incident; it matches {names}")
    raise UsageError(f"there is no incident {name!r}; give an id or a prefix of it (`rung log` prints the ids)")


def _print_heading(record: dict[str, Any], opened_by: dict[str, Any], cache_share: float | None) -> None:
    status = record["status"]
    colour = {"succeeded": "green", "recovered": "green", "open": "yellow"}.get(status, "red")
    end = record["ended_at"] if record["ended_at"] is not None else record["touched_at"]
    amount = f"{pluralize(record['attempts'], 'attempt')} in {format_duration(end - record['opened_at'])}"
    cost = f", {format_dollars(record['dollars'])}" if record["dollars"] else ""
    word = click.style(status, fg=colour, bold=True)
    click.echo(f"{click.style(record['id'], bold=True)}  {word}  {amount}{cost}")
    models = [name for name in dict.fromkeys((record["first_model"], record["model"])) if name]
    request = opened_by.get("request") or {}
    for label, text in (
        ("opened", f"{format_time(record['opened_at'])} UTC"),
        ("project", record["project"]),
        ("session", record["session"]),
        (
            "cache",
            f"{format_percent(cache_share)} of the session's input from cache" if cache_share is not None else "",
        ),
        ("parent", record["parent"]),
        ("agent", record["agent"]),
        ("model", " → ".join(models)),
        ("ladder", f"{record['ladder']}, policy {record['policy']}"),
        ("task", _task(request)),
    ):
        if text:
            print_row(label, text, LABEL_WIDTH)
    click.echo()


def _task(request: dict[str, Any]) -> str:
    from rung.core.domain.failures import first_line

    if request.get("prompt"):
        return first_line(request["prompt"], 200)
    messages = request.get("messages") or []
    return pluralize(len(messages), "message") if messages else ""


def _print_timeline(bodies: list[dict[str, Any]], numbers: dict[int, int]) -> None:
    from rung.core.text.event_text import describe_json

    rungs = tuple(bodies[0].get("terms", {}).get("rungs", ())) if bodies else ()
    began = previous = float(bodies[0]["at"]) if bodies else 0.0
    for n, body in enumerate(bodies):
        at = float(body["at"])
        stamp = f"+{format_duration(at - began)}" if n == 0 or at != previous else ""
        previous = at
        _print_event(stamp, describe_json(body, rungs, numbers.get(n, 0)))


def _print_event(stamp: str, event: EventText) -> None:
    from rung.core.text.progress_line import MARKS

    edge = TIME_WIDTH + 2 + SUBJECT_WIDTH
    body = paragraph(event.text, indent=edge)[edge:]
    sign = click.style(MARKS[event.mark][0], fg=MARK_COLOURS[event.mark])
    time = click.style(f"{stamp:>{TIME_WIDTH - 1}} ", dim=True)
    click.echo(f"{time}{sign} {click.style(f'{event.subject:<{SUBJECT_WIDTH}}', bold=event.mark != 'note')}{body}")
    facts = event.more
    if event.time:
        facts = (", ".join((f"took {event.time}", *facts[:1])), *facts[1:])
    for line in facts:
        click.secho(paragraph(line, indent=edge, hang=2), dim=True)


def _print_ending(
    record: dict[str, Any], bodies: list[dict[str, Any]], seen: dict[str, Any] | None, open_state: str
) -> None:
    from rung.core.domain.recommendation import recommendation

    click.echo()
    if record["status"] == "open":
        print_row("now", open_state, LABEL_WIDTH)
    else:
        print_row("ended", f"{record['status']}{': ' + record['reason'] if record['reason'] else ''}", LABEL_WIDTH)
    if record["status"] in {"partial", "blocked", "failed"}:
        print_row("advice", recommendation(_last_failure(bodies), record["reason"] or ""), LABEL_WIDTH)
    if seen is not None:
        since = f"since {format_time(seen['first_at'], to='minutes')}"
        print_row(
            "seen", f"{pluralize(int(seen['times']), 'time')} {since}, fingerprint {record['fingerprint']}", LABEL_WIDTH
        )


def _last_failure(bodies: list[dict[str, Any]]) -> Failure | None:
    from rung.core.domain.event_codec import from_json
    from rung.core.domain.events import AttemptFailed

    for body in reversed(bodies):
        if body.get("name") == "attempt_failed":
            event = from_json(body)
            return event.failure if isinstance(event, AttemptFailed) else None
    return None
