"""`rung alerts`: checks, lists, tests and silences the alerts of a settings file, and shows their history."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.command_group import CommandGroup
from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option, now
from rung.cli.output import json_option, pluralize, print_json
from rung.core.alerts.notifications import format_span, format_time, format_value
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.alerts.rules import AlertRule
    from rung.store.alerts.states import AlertEntry
    from rung.wiring.alerts import Alerts
    from rung.wiring.settings_file import SettingsFile

NOT_SENT: Final = 1  # exit code of a test that a channel did not accept
_file_option = click.option(
    "--config", "file", metavar="FILE", help="Settings file with an [alerts] table (default: ./rung.toml)."
)


@click.group(
    cls=CommandGroup,
    short_help="Check, list, test and silence alerts.",
    epilog=epilogue(
        "Rules and channels are in [alerts.rules.NAME] and [alerts.channels.NAME] of rung.toml. A service, a gateway and "
        "a crew evaluate them while they run; this command evaluates nothing.",
        examples=("rung alerts check", "rung alerts test failing"),
    ),
)
def command() -> None:
    """Check, list, test and silence alerts, and show what fired."""


@command.command("check", epilog=epilogue(examples=("rung alerts check",)))
@click.argument("file", required=False)
@json_option
def check(file: str | None, *, as_json: bool) -> None:
    """Check the alerts of FILE (default: ./rung.toml) and the variables of their channels. Nothing is sent."""
    from rung.wiring.alerts import check_alerts

    source = _source(file)
    source.book()  # a misspelled table would be no alerts
    settings = check_alerts(source)
    rules = {} if settings is None else settings.rules
    channels = {} if settings is None else settings.channels
    if as_json:
        print_json({"file": str(source.path), "rules": list(rules), "channels": list(channels)})
        return
    for rule in rules.values():
        to = ", ".join(rule.channels) or "history only"
        click.echo(f"{rule.name}: {_condition(rule)} -> {to}")
    found = f"{pluralize(len(rules), 'rule')}, {pluralize(len(channels), 'channel')}"
    click.echo(f"{source.path}: {found}: valid")


@command.command("list", epilog=epilogue(examples=("rung alerts list",)))
@_file_option
@journal_option
@json_option
def show(*, file: str | None, journal_at: str | None, as_json: bool) -> None:
    """List the rules with their state and their figure now."""
    with _alerts(file, journal_at) as (alerts, journal):
        from rung.store.alerts.views import rule_views
        from rung.wiring.alerts import untrusted_alerts

        views = rule_views(journal, alerts.settings, alerts.figure)
    if as_json:
        print_json({"rules": views})
        return
    for view in views:
        rule = alerts.settings.rules[view["name"]]
        value = "unknown" if view["value"] is None else format_value(rule.when, view["value"])
        until = view["silenced_until"]
        silenced = f"; silenced until {format_time(until)}" if until is not None and until > now() else ""
        cooling = view["cooling_until"]
        state = view["state"] if cooling is None else "cooling down"
        again = "" if cooling is None else f"; over the threshold, may fire again at {format_time(cooling)}"
        click.echo(f"{state:<12} {rule.name}: {value} now; fires {_condition(rule)}{again}{silenced}")
        for scope in view["scopes"]:
            click.echo(f"{scope['state']:<12}   {scope['scope']}")
    if file is None and (off := untrusted_alerts()) is not None:
        click.echo(f"Alerts are off: {off.place} is denied, so its [alerts] are not used. Run: {off.trust_command}")
    elif not views:
        click.echo("No rules. Add [alerts.rules.NAME] to rung.toml; see docs/howto/set-up-alerts.md.")


@command.command("test", epilog=epilogue(examples=("rung alerts test failing",)))
@click.argument("name")
@_file_option
@journal_option
@json_option
def test(name: str, *, file: str | None, journal_at: str | None, as_json: bool) -> None:
    """Send a test notification of the rule NAME to its channels. Exits with 1 if a channel did not accept it."""
    with _alerts(file, journal_at, check=True) as (alerts, _):
        errors = alerts.send_test(name).errors
    if as_json:
        print_json({"rule": name, "channels": {channel: {"error": error} for channel, error in errors.items()}})
    else:
        for channel, error in errors.items():
            click.echo(f"{channel}: {f'not sent: {error}' if error else 'sent'}")
        if not errors:
            click.echo(f"{name} has no channels: its alerts are in the history only.")
    if any(errors.values()):
        sys.exit(NOT_SENT)


@command.command("history", epilog=epilogue(examples=("rung alerts history --limit 20",)))
@click.option("--rule", help="Only this rule.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Number of rows.")
@journal_option
@json_option
def past(*, rule: str | None, limit: int, journal_at: str | None, as_json: bool) -> None:
    """Show what fired and was resolved, the newest first, and what became of each notification."""
    from rung.store.alerts.states import history
    from rung.store.alerts.views import entry_view

    with existing_journal(journal_at) as journal:
        entries = history(journal, rule=rule, limit=limit)
    if as_json:
        print_json({"entries": [entry_view(entry) for entry in entries]})
        return
    for entry in entries:
        click.echo(_entry_line(entry))
    if not entries:
        click.echo("No alert has fired.")


@command.command("silence", epilog=epilogue(examples=("rung alerts silence failing --minutes 60",)))
@click.argument("name")
@click.option("--minutes", type=click.FloatRange(0, 10_080), default=60.0, show_default=True, help="0 ends a silence.")
@_file_option
@journal_option
def silence(name: str, *, minutes: float, file: str | None, journal_at: str | None) -> None:
    """Hold the notifications of the rule NAME back. If it still fires afterwards, it is notified then."""
    from rung.store.alerts.states import silence as store_silence
    from rung.store.settings import record_audit

    with _alerts(file, journal_at) as (alerts, journal):
        alerts.rule(name)
        until = store_silence(journal, name, minutes * 60)
        record_audit(journal, "command line", "silence", f"alert/{name}", {"minutes": minutes})
    click.echo(f"{name}: silenced until {format_time(until)}" if minutes else f"{name}: no longer silenced")


def _source(file: str | None) -> SettingsFile:
    from rung.wiring.settings_file import CONFIG_FILE, find, named

    found = named(file) if file else find(needs=("alerts",))
    if found is None:
        raise ConfigError("FILE", CONFIG_FILE, "a settings file: there is no rung.toml in this directory")
    return found


@contextmanager
def _alerts(file: str | None, journal_at: str | None, *, check: bool = False) -> Iterator[tuple[Alerts, Any]]:
    """Open the journal, and yield the alerts of a file over it; nothing is evaluated."""
    from rung.core.alerts.rules import AlertSettings
    from rung.wiring.alerts import Alerts, check_alerts
    from rung.wiring.journals import journal as open_default

    source = _source(file)
    settings = check_alerts(source) if check else source.alerts()
    with open_default(journal_at) as journal:
        yield Alerts(journal, settings or AlertSettings()), journal


def _condition(rule: AlertRule) -> str:
    project = "" if rule.project is None else f" of {rule.project or 'the unnamed project'}"
    return f"at {rule.when}{project} >= {format_value(rule.when, rule.threshold)}, window {format_span(rule.window_seconds)}"


def _entry_line(entry: AlertEntry) -> str:
    made = entry.notification
    parts = [f"{channel} {one.get('state')}" for channel, one in entry.deliveries.items()]
    errors = [str(one["error"]) for one in entry.deliveries.values() if one.get("error")]
    told = ", ".join(parts) or ("silenced" if entry.is_silenced else "history only")
    return f"{format_time(made.at)}  {made.title}: {made.summary} [{told}]" + "".join(f" ({one})" for one in errors)
