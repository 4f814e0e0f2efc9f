"""`rung backtest`: what another policy would have done with the incidents in the journal, and what nobody can know."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from rung.cli.journal.option import journal_option, moment, opened
from rung.cli.output import as_json, count, paragraph, print_json, row
from rung.core.domain.settings_schema import suggest_names
from rung.core.text.units import format_dollars, format_duration, format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.events import Opened
    from rung.core.policy.policy import Policy
    from rung.core.recovery.backtest import Counterfactual, Summary

LABEL: Final = 16


class BacktestRow(NamedTuple):
    """An incident, when and where it was, and what would have become of it."""

    opened: Opened
    found: Counterfactual


@click.command(short_help="Try another policy on recorded incidents.")
@click.option("--policy", "policy_name", required=True, metavar="FILE|LADDER", help="Policy file or ladder to try.")
@click.option(
    "--since",
    callback=moment,
    metavar="WHEN",
    help="Start of the time range: 7d, 12h, or a date such as 2026-11-01 (UTC).",
)
@click.option("--project", help="Only this project.")
@click.option(
    "--limit", "-n", default=20, show_default=True, help="Number of differing incidents to print; 0 prints none."
)
@journal_option
@as_json
def command(
    *, policy_name: str, since: float | None, project: str | None, limit: int, journal_at: str | None, as_json: bool
) -> None:
    """Show what another policy would have done with the incidents in the journal.

    Only incidents that have ended and in which something failed. A policy file's own settings for a project
    are used for that project's incidents.
    """
    from rung.core.recovery.backtest import replay, summarize
    from rung.store.queries.incident_replay import ended_incidents

    pick = _policies(policy_name)
    unreadable: list[str] = []
    replayed: list[BacktestRow] = []
    with opened(journal_at) as journal:
        for events in ended_incidents(journal, unreadable, since=since, project=project):
            first: Any = events[0]
            replayed.append(BacktestRow(first, replay(events, pick(first.terms.project))))
    total = summarize(one.found for one in replayed)
    elsewhere = sum(one.opened.terms.ladder != pick(one.opened.terms.project).ladder.name for one in replayed)
    if as_json:
        print_json(_table(policy_name, replayed, total, elsewhere, unreadable))
        return
    _show_total(policy_name, total, elsewhere, unreadable)
    _show_differing([one for one in replayed if one.found.describe() != "the same"], max(0, limit))
    if replayed:
        from rung.core.recovery.backtest import LIMITATIONS

        click.secho("\nWhat this cannot know", bold=True)
        for text in LIMITATIONS:
            click.echo(paragraph(f"- {text}", indent=2, hang=2))


def _policies(name: str) -> Callable[[str], Policy]:
    """The policy for a project: the same for all, or as a file says."""
    from rung.core.domain.errors import ConfigError
    from rung.core.policy.policy import preset
    from rung.core.policy.presets import LADDERS

    if name in LADDERS:
        policy = preset(name)
        return lambda _: policy
    if not (Path(name).suffix or Path(name).exists()):
        allowed = "a policy file, or one of " + ", ".join(LADDERS)
        raise ConfigError("policy", name, allowed + suggest_names(name, LADDERS))
    from rung.wiring.files import load_policy

    book = load_policy(name)
    known = {project: book.policy_for(project) for project in book.projects}
    return lambda project: known.get(project, book.default)


def _table(
    policy_name: str, replayed: list[BacktestRow], total: Summary, elsewhere: int, unreadable: list[str]
) -> dict[str, Any]:
    from rung.core.recovery.backtest import LIMITATIONS

    return {
        "policy": policy_name,
        "summary": asdict(total),
        "on_another_ladder": elsewhere,
        "unreadable": unreadable,
        "incidents": [
            {
                **asdict(one.found),
                "project": one.opened.terms.project,
                "ladder": one.opened.terms.ladder,
                "opened_at": one.opened.at,
                "same": one.found.is_same,
                "known": one.found.is_known,
                "words": one.found.describe(),
            }
            for one in replayed
        ],
        "cannot_know": list(LIMITATIONS),
    }


def _show_total(policy_name: str, total: Summary, elsewhere: int, unreadable: list[str]) -> None:
    if not total.incidents:
        click.echo("No incident that has ended with a failure in it.")
    else:
        click.echo(
            f"{count(total.incidents, 'incident')} with a failure, under {click.style(policy_name, bold=True)}:\n"
        )
        lost = f"; {total.good_lost} of them had recovered, and would not have" if total.good_lost else ""
        more = f"; {total.more} would have gone on where the recorded one ended" if total.more else ""
        row("the same", str(total.same), LABEL)
        row("fewer attempts", f"{total.fewer}{lost if total.fewer else ''}", LABEL)
        row("another end", f"{total.otherwise}{'' if total.fewer else lost}", LABEL)
        row("unknown", f"{total.unknown}{more}", LABEL)
        row("among the known", _saved(total), LABEL)
    if elsewhere:
        click.echo(paragraph(f"{count(elsewhere, 'incident')} of these took place on another ladder.", indent=2))
    if unreadable:
        left = f"{count(len(unreadable), 'incident')} could not be read and {'is' if len(unreadable) == 1 else 'are'} left out."
        click.echo(paragraph(left, indent=2))


def _saved(total: Summary) -> str:
    parts = []
    if total.attempts_saved:
        parts.append(f"{count(total.attempts_saved, 'attempt')} fewer")  # more are never known
    if abs(total.seconds_saved) >= 0.1:  # noqa: PLR2004  # less is what chance makes of it
        parts.append(
            f"about {format_duration(abs(total.seconds_saved))} {'less' if total.seconds_saved > 0 else 'more'}"
        )
    if total.dollars_saved:
        parts.append(f"{format_dollars(total.dollars_saved)} less")
    return ", ".join(parts) or "no difference in attempts, time or cost"


def _show_differing(differing: list[BacktestRow], limit: int) -> None:
    if not differing or not limit:
        return
    click.secho("\nWhat would have been different", bold=True)
    for opened_, found in differing[-limit:]:
        where = f" · {opened_.terms.project}" if opened_.terms.project else ""
        click.echo(f"  {found.incident}  {click.style(format_time(opened_.at, to='minutes') + where, dim=True)}")
        click.echo(paragraph(found.describe(), indent=4))
        if found.point is not None:
            click.echo(paragraph(f"recorded: {found.point.recorded}", indent=4))
    if len(differing) > limit:
        click.echo(f"  … and {len(differing) - limit} earlier (--limit)")
