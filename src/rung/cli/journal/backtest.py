"""`rung backtest`: replays recorded incidents under another policy."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from rung.cli.complete_names import complete_ladder
from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option, project_option, since_option
from rung.cli.output import json_option, paragraph, pluralize, print_json, print_row
from rung.core.domain.settings_schema import suggest_names
from rung.core.text.units import format_dollars, format_duration, format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.events import Opened
    from rung.core.policy.policy import Policy
    from rung.core.recovery.backtest import Counterfactual, Summary

LABEL_WIDTH: Final = 16


class BacktestRow(NamedTuple):
    """A recorded incident, and its outcome under the other policy."""

    opened: Opened
    counterfactual: Counterfactual


@click.command(
    epilog=epilogue(
        examples=("rung backtest --policy mine.toml --since 30d", "rung backtest --suggest > suggested.toml")
    )
)
@click.option(
    "--policy",
    "policy_name",
    shell_complete=complete_ladder,
    metavar="FILE|LADDER",
    help="Policy file or ladder to try. With --suggest: the one to change (default: the ladder of most incidents).",
)
@click.option("--suggest", is_flag=True, help="Suggest a policy from the outcomes of the rungs in the journal.")
@since_option
@project_option
@click.option(
    "--limit", "-n", default=20, show_default=True, help="Number of differing incidents to print; 0 prints none."
)
@journal_option
@json_option
def command(
    *,
    policy_name: str | None,
    suggest: bool,
    since: float | None,
    project: str | None,
    limit: int,
    journal_at: str | None,
    as_json: bool,
) -> None:
    """Show what another policy would have done with the incidents in the journal.

    Only closed incidents with a failure are replayed. The project tables of a policy file apply to the
    incidents of those projects.

    With --suggest, the changes of a policy that would have paid: later entry rungs and fewer tries, with what they would
    have saved, how sure that is, and a fragment for rung.toml.
    """
    if suggest:
        _suggest(policy_name, since, project, journal_at, as_json=as_json)
        return
    if policy_name is None:
        raise click.UsageError("Missing option '--policy' (or '--suggest').")
    from rung.core.recovery.backtest import replay, summarize
    from rung.store.queries.incident_replay import ended_incidents

    pick = _policy_picker(policy_name)
    unreadable: list[str] = []
    replayed: list[BacktestRow] = []
    with existing_journal(journal_at) as journal:
        for events in ended_incidents(journal, unreadable, since=since, project=project):
            first: Any = events[0]
            replayed.append(BacktestRow(first, replay(events, pick(first.terms.project))))
    total = summarize(entry.counterfactual for entry in replayed)
    elsewhere = sum(entry.opened.terms.ladder != pick(entry.opened.terms.project).ladder.name for entry in replayed)
    if as_json:
        print_json(_to_json(policy_name, replayed, total, elsewhere, unreadable))
        return
    _show_total(policy_name, total, elsewhere, unreadable)
    _show_differing([entry for entry in replayed if entry.counterfactual.describe() != "the same"], max(0, limit))
    if replayed:
        from rung.core.recovery.backtest import LIMITATIONS

        click.secho("\nLimits of the backtest", bold=True)
        for text in LIMITATIONS:
            click.echo(paragraph(f"- {text}", indent=2, hang=2))


def _suggest(
    policy_name: str | None, since: float | None, project: str | None, journal_at: str | None, *, as_json: bool
) -> None:
    from rung.cli.journal.backtest_suggest import most_used_ladder, print_suggestion
    from rung.core.recovery.rung_tries import tries_of
    from rung.store.queries.incident_replay import ended_incidents

    pick = None if policy_name is None else _policy_picker(policy_name)
    unreadable: list[str] = []
    with existing_journal(journal_at) as journal:
        incidents = [tries_of(events) for events in ended_incidents(journal, unreadable, since=since, project=project)]
    name = policy_name or most_used_ladder(incidents)
    print_suggestion(incidents, name, pick or _policy_picker(name), unreadable, project=project, as_json=as_json)


def _policy_picker(name: str) -> Callable[[str], Policy]:
    """Return a function from project to policy: a preset for all, or what the file says."""
    from rung.core.domain.errors import ConfigError
    from rung.core.policy.presets import LADDERS
    from rung.core.policy.templates import preset

    if name in LADDERS:
        policy = preset(name)
        return lambda _: policy
    if not (Path(name).suffix or os.path.exists(name)):  # noqa: PTH110  # Path.exists raises for a long name
        allowed = "a policy file, or one of " + ", ".join(LADDERS)
        raise ConfigError("policy", name, allowed + suggest_names(name, LADDERS))
    from rung.wiring.files import load_policy

    book = load_policy(name)
    policies = {project: book.policy_for(project) for project in book.projects}
    return lambda project: policies.get(project, book.default)


def _to_json(
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
                **asdict(entry.counterfactual),
                "project": entry.opened.terms.project,
                "ladder": entry.opened.terms.ladder,
                "opened_at": entry.opened.at,
                "same": entry.counterfactual.is_same,
                "known": entry.counterfactual.is_known,
                "words": entry.counterfactual.describe(),
            }
            for entry in replayed
        ],
        "cannot_know": list(LIMITATIONS),
    }


def _show_total(policy_name: str, total: Summary, elsewhere: int, unreadable: list[str]) -> None:
    if not total.incidents:
        click.echo("No closed incident with a failure.")
    else:
        click.echo(
            f"{pluralize(total.incidents, 'incident')} with a failure, under {click.style(policy_name, bold=True)}:\n"
        )
        lost = f"; {total.good_lost} of them recovered, and would not have" if total.good_lost else ""
        more = f"; {total.more} would have continued after the recorded end" if total.more else ""
        print_row("the same", str(total.same), LABEL_WIDTH)
        print_row("fewer attempts", f"{total.fewer}{lost if total.fewer else ''}", LABEL_WIDTH)
        print_row("another end", f"{total.otherwise}{'' if total.fewer else lost}", LABEL_WIDTH)
        print_row("unknown", f"{total.unknown}{more}", LABEL_WIDTH)
        print_row("difference", _savings_text(total), LABEL_WIDTH)
    if elsewhere:
        click.echo(paragraph(f"{pluralize(elsewhere, 'incident')} used another ladder.", indent=2))
    if unreadable:
        left = f"{pluralize(len(unreadable), 'incident')} could not be read and {'is' if len(unreadable) == 1 else 'are'} skipped."
        click.echo(paragraph(left, indent=2))


def _savings_text(total: Summary) -> str:
    parts = []
    if total.attempts_saved:
        parts.append(f"{pluralize(total.attempts_saved, 'attempt')} fewer")  # additional attempts cannot be predicted
    if abs(total.seconds_saved) >= 0.1:  # noqa: PLR2004  # smaller differences are jitter
        parts.append(
            f"about {format_duration(abs(total.seconds_saved))} {'less' if total.seconds_saved > 0 else 'more'}"
        )
    if total.dollars_saved:
        parts.append(f"{format_dollars(total.dollars_saved)} less")
    return ", ".join(parts) or "no difference in attempts, time or cost"


def _show_differing(differing: list[BacktestRow], limit: int) -> None:
    if not differing or not limit:
        return
    click.secho("\nIncidents that differ", bold=True)
    for opened_, counterfactual in differing[-limit:]:
        where = f" · {opened_.terms.project}" if opened_.terms.project else ""
        click.echo(
            f"  {counterfactual.incident}  {click.style(format_time(opened_.at, to='minutes') + where, dim=True)}"
        )
        click.echo(paragraph(counterfactual.describe(), indent=4))
        if counterfactual.point is not None:
            click.echo(paragraph(f"recorded: {counterfactual.point.recorded}", indent=4))
    if len(differing) > limit:
        click.echo(f"  … and {len(differing) - limit} earlier (--limit)")
