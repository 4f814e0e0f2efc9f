"""`rung show INCIDENT`: one climb from its first failure to its end, so that it can be understood by reading it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.journal.option import journal_option, opened
from rung.cli.output import as_json, count, paragraph, print_json, row
from rung.core.text.units import format_dollars, format_duration, format_time

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.text.event_text import EventText
    from rung.store.journal.journal import Journal

LABEL: Final = 9
TIME: Final = 9
SUBJECT: Final = 13
LAST: Final = "last"
SEVERAL: Final = 5
COLOURS: Final = {"bad": "red", "good": "green", "next": "yellow", "climb": "cyan", "note": None, "end": "magenta"}


@click.command()
@click.argument("incident", metavar="INCIDENT")
@journal_option
@as_json
def command(incident: str, *, journal_at: str | None, as_json: bool) -> None:
    """Show one INCIDENT: failures, decisions, changes, waits, cost and outcome.

    INCIDENT is an id, as much of its beginning as is unique, or `last`.
    """
    from rung.store.queries.incidents import attempt_numbers, event_bodies, failure_count

    with opened(journal_at) as journal:
        found = find(journal, incident)
        bodies = event_bodies(journal, found["id"])
        numbers = attempt_numbers(journal, found["id"])
        seen_before = failure_count(journal, found["project"], found["fingerprint"])
        seen = seen_before._asdict() if seen_before is not None else None
    if as_json:
        print_json({"incident": found, "seen": seen, "events": bodies})
        return
    _heading(found, bodies[0] if bodies else {})
    _timeline(bodies, numbers)
    _ending(found, bodies, seen)


def find(journal: Journal, name: str) -> dict[str, Any]:
    """The row of the one incident whose id begins so."""
    from rung.core.domain.errors import ConfigError
    from rung.store.queries.incidents import incidents_named, last_incident

    rows = last_incident(journal) if name == LAST else incidents_named(journal, name, SEVERAL + 1)
    if len(rows) == 1:
        return rows[0]
    allowed = "the id of an incident, or its beginning (`rung log` shows them)"
    if rows:
        names = ", ".join(str(row["id"]) for row in rows[:SEVERAL]) + (" …" if len(rows) > SEVERAL else "")
        allowed = f"the beginning of one incident's id, not of {names}"
    raise ConfigError("incident", name, allowed)


def _heading(found: dict[str, Any], opened_by: dict[str, Any]) -> None:
    status = found["status"]
    colour = {"succeeded": "green", "recovered": "green", "open": "yellow"}.get(status, "red")
    end = found["ended_at"] if found["ended_at"] is not None else found["touched_at"]
    amount = f"{count(found['attempts'], 'attempt')} in {format_duration(end - found['opened_at'])}"
    cost = f", {format_dollars(found['dollars'])}" if found["dollars"] else ""
    word = click.style(status, fg=colour, bold=True)
    click.echo(f"{click.style(found['id'], bold=True)}  {word}  {amount}{cost}")
    models = [name for name in dict.fromkeys((found["first_model"], found["model"])) if name]
    request = opened_by.get("request") or {}
    for label, text in (
        ("opened", f"{format_time(found['opened_at'])} UTC"),
        ("project", found["project"]),
        ("session", found["session"]),
        ("parent", found["parent"]),
        ("agent", found["agent"]),
        ("model", " → ".join(models)),
        ("ladder", f"{found['ladder']}, policy {found['policy']}"),
        ("task", _task(request)),
    ):
        if text:
            row(label, text, LABEL)
    click.echo()


def _task(request: dict[str, Any]) -> str:
    from rung.core.domain.failures import first_line

    if request.get("prompt"):
        return first_line(request["prompt"], 200)
    messages = request.get("messages") or []
    return count(len(messages), "message") if messages else ""


def _timeline(bodies: list[dict[str, Any]], numbers: dict[int, int]) -> None:
    from rung.core.text.event_text import describe_json

    rungs = tuple(bodies[0].get("terms", {}).get("rungs", ())) if bodies else ()
    began = former = float(bodies[0]["at"]) if bodies else 0.0
    for n, body in enumerate(bodies):
        at = float(body["at"])
        stamp = f"+{format_duration(at - began)}" if n == 0 or at != former else ""
        former = at
        _print(stamp, describe_json(body, rungs, numbers.get(n, 0)))


def _print(stamp: str, event: EventText) -> None:
    from rung.cli.event_printer import MARKS

    edge = TIME + 2 + SUBJECT
    body = paragraph(event.text, indent=edge)[edge:]
    sign = click.style(MARKS[event.mark][0], fg=COLOURS[event.mark])
    time = click.style(f"{stamp:>{TIME - 1}} ", dim=True)
    click.echo(f"{time}{sign} {click.style(f'{event.subject:<{SUBJECT}}', bold=event.mark != 'note')}{body}")
    facts = event.more
    if event.time:
        facts = (", ".join((f"took {event.time}", *facts[:1])), *facts[1:])
    for line in facts:
        click.secho(paragraph(line, indent=edge, hang=2), dim=True)


def _ending(found: dict[str, Any], bodies: list[dict[str, Any]], seen: dict[str, Any] | None) -> None:
    from rung.core.domain.outcome import recommendation

    click.echo()
    if found["status"] == "open":
        row("now", f"open, last heard of {format_time(found['touched_at'])} UTC", LABEL)
    else:
        row("ended", f"{found['status']}{': ' + found['reason'] if found['reason'] else ''}", LABEL)
    if found["status"] in {"partial", "blocked", "failed"}:
        row("advice", recommendation(_last_failure(bodies)), LABEL)
    if seen is not None:
        since = f"since {format_time(seen['first_at'], to='minutes')}"
        row("seen", f"{count(int(seen['times']), 'time')} {since}, fingerprint {found['fingerprint']}", LABEL)


def _last_failure(bodies: list[dict[str, Any]]) -> Failure | None:
    from rung.core.domain.event_codec import from_json
    from rung.core.domain.events import AttemptFailed

    for body in reversed(bodies):
        if body.get("name") == "attempt_failed":
            event = from_json(body)
            return event.failure if isinstance(event, AttemptFailed) else None
    return None
