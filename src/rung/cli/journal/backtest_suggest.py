"""`rung backtest --suggest`: print the changes of a policy that the recorded incidents suggest."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rung.cli.output import paragraph, pluralize, print_json
from rung.core.policy.serializer import to_toml
from rung.core.recovery.suggest import ASSUMPTIONS, Suggestion, suggest
from rung.core.text.printable import printable
from rung.core.text.units import format_dollars, format_duration, format_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.policy.policy import Policy
    from rung.core.recovery.rung_tries import TriedIncident
    from rung.core.recovery.success_rate import SuccessRate
    from rung.core.recovery.suggest import PolicyChange
    from rung.core.recovery.try_estimates import Saving


def print_suggestion(
    incidents: Sequence[TriedIncident],
    policy_name: str,
    policy_of: Callable[[str], Policy],
    unreadable: Sequence[str],
    *,
    project: str | None,
    as_json: bool,
) -> None:
    """Print the changes that these incidents suggest for the policies that they are compared with."""
    from rung.core.policy.presets import LADDERS

    found = suggest(incidents, policy_of, project)
    table = found.table()
    if table and policy_name in LADDERS and policy_name != "task":
        table["policy"] = {"ladder": policy_name, **table.get("policy", {})}
    fragment = to_toml(table)
    if as_json:
        print_json(_to_json(found, policy_name, fragment, unreadable))
        return
    _show(found, policy_name, fragment)
    if unreadable:
        click.echo(paragraph(f"{pluralize(len(unreadable), 'incident')} could not be read.", indent=2))


def most_used_ladder(incidents: Sequence[TriedIncident]) -> str:
    """Return the built-in ladder that most of the incidents used; `task` if there is none."""
    from rung.core.policy.presets import LADDERS

    used = Counter(one.ladder for one in incidents if one.ladder in LADDERS)
    return used.most_common(1)[0][0] if used else "task"


def _to_json(found: Suggestion, policy_name: str, fragment: str, unreadable: Sequence[str]) -> dict[str, Any]:
    return {
        "policy": policy_name,
        "incidents": found.incidents,
        "needed": found.needed,
        "enough": found.is_enough,
        "on_another_ladder": found.elsewhere,
        "unreadable": list(unreadable),
        "toml": fragment,
        "changes": [_change_json(change) for change in found.changes],
        "too_few": [{"kind": kind, "incidents": count} for kind, count in found.too_few],
        "never_fixed": [
            {"kind": kind, "incidents": count, "attempts": tries} for kind, count, tries in found.never_fixed
        ],
        "assumptions": list(ASSUMPTIONS),
    }


def _change_json(change: PolicyChange) -> dict[str, Any]:
    saving = {name: value._asdict() for name, value in _savings(change).items()}
    return {
        **asdict(change),
        "left_out": _rate_json(change.left_out),
        "instead": None if change.instead is None else _rate_json(change.instead),
        "models": [{"model": model, **_rate_json(rate)} for model, rate in change.models],
        "saving": saving,
    }


def _savings(change: PolicyChange) -> dict[str, Saving]:
    saving = change.saving
    return {
        "attempts": saving.attempts,
        "seconds": saving.seconds,
        "dollars": saving.dollars,
        "recoveries_lost": saving.recoveries_lost,
    }


def _rate_json(rate: SuccessRate) -> dict[str, Any]:
    return {"succeeded": rate.succeeded, "tried": rate.tried, "low": rate.low, "high": rate.high}


def _show(found: Suggestion, policy_name: str, fragment: str) -> None:
    needed = f"at least {found.needed} are needed"
    elsewhere = f"; {pluralize(found.elsewhere, 'incident')} used another ladder" if found.elsewhere else ""
    if not found.is_enough:
        click.echo(
            paragraph(
                f"{pluralize(found.incidents, 'incident')} with a try of a rung; {needed}{elsewhere}. No suggestion."
            )
        )
        return
    click.echo(
        paragraph(
            f"{pluralize(found.incidents, 'incident')} with a try of a rung, compared with {policy_name}{elsewhere}."
        )
    )
    if not found.changes:
        click.echo("\nNo change is suggested: no rung does surely worse than the one after it.")
    for change in found.changes:
        _show_change(change)
    if fragment:
        click.secho("\nFragment for rung.toml; check it with rung backtest --policy FILE", bold=True)
        click.echo("\n" + "\n".join(printable(line) for line in fragment.splitlines()))
    for kind, count, tries in found.never_fixed:
        text = f"Never fixed: {kind}, {pluralize(count, 'incident')}, {pluralize(tries, 'attempt')} after it"
        click.echo("\n" + paragraph(text))
    if found.too_few:
        kinds = ", ".join(f"{kind} ({pluralize(count, 'incident')})" for kind, count in found.too_few)
        click.echo("\n" + paragraph(f"Too little data for {kinds}; {needed}."))
    click.secho("\nLimits of the suggestion", bold=True)
    for text in ASSUMPTIONS:
        click.echo(paragraph(f"- {text}", indent=2, hang=2))


def _show_change(change: PolicyChange) -> None:
    where = f"project {change.project}: " if change.project else ""
    what = "entry of" if change.setting == "entry" else "tries of"
    click.secho(printable(f"\n{where}{what} {change.key}: {change.value} (was {change.was})"), bold=True)
    rates = f"left out: {_rate_text(change.left_out)}"
    if change.instead is not None and change.sure is not None:
        rates += f"; {change.instead_rung}: {_rate_text(change.instead)}, better with probability {format_percent(change.sure)}"
    saving = change.saving
    saved = [f"{saving.attempts.expected:.0f} attempts ({saving.attempts.low:.0f} to {saving.attempts.high:.0f})"]
    saved.append(_range_text(saving.seconds, format_duration))
    if saving.dollars.expected or saving.dollars.high:
        saved.append(_range_text(saving.dollars, format_dollars))
    lost = saving.recoveries_lost
    for text in (
        rates,
        f"would have saved {', '.join(saved)}",
        f"recoveries lost: {lost.expected:.1f} ({lost.low:.1f} to {lost.high:.1f})",
        f"rests on {pluralize(change.incidents, 'incident')}",
        *(f"{model}: {_rate_text(rate)}" for model, rate in change.models if len(change.models) > 1),
    ):
        click.echo(paragraph(text, indent=2, hang=2))


def _rate_text(rate: SuccessRate) -> str:
    return f"{rate.succeeded} of {rate.tried} tries succeeded ({100 * rate.low:.0f} to {100 * rate.high:.0f} %)"


def _range_text(saving: Saving, written: Callable[[float], str]) -> str:
    def signed(value: float) -> str:
        return f"-{written(-value)}" if value < 0 else written(value)

    return f"{signed(saving.expected)} ({signed(saving.low)} to {signed(saving.high)})"
