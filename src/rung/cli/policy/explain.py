"""`rung explain`: explains a kind of failure, a classification rule, or why a session failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rung.cli.complete_names import complete_kind
from rung.cli.help_text import epilogue
from rung.cli.journal.option import journal_option
from rung.cli.output import json_option, paragraph, print_json, print_row
from rung.cli.usage import UsageError
from rung.core.classify import learned
from rung.core.classify.classifier import rules
from rung.core.classify.rule_index import describe_conditions
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.settings_schema import suggest_names
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from rung.core.classify.rule_index import ClassifyRule
    from rung.core.domain.failures import Evidence
    from rung.core.domain.ladder import Ladder


@click.command(epilog=epilogue(examples=("rung explain rate_limit", "rung explain http-429", "rung explain SESSION")))
@click.argument("name", metavar="[KIND|RULE|SESSION]", required=False, shell_complete=complete_kind)
@journal_option
@json_option
def command(name: str | None, *, journal_at: str | None, as_json: bool) -> None:
    """Explain a kind of failure (rate_limit, loop_detected, …) or a rule (http-429, not-json, …).

    For the id of a session, print its root cause: the step that first went wrong, and why the later failures follow from
    it; or that no single cause is certain. Without a name, list all kinds.
    """
    if name is None:
        _show_all(as_json=as_json)
        return
    kind, rule = _find(name)
    if name == learned.RULE:
        _show_model(as_json=as_json)
        return
    if kind is None and rule is None:
        from rung.cli.policy.explain_session import explain_session

        explain_session(name, journal_at, _unknown_name(name), as_json=as_json)
        return
    if as_json:
        found = {"kind": kind and _kind_json(kind), "rule": rule and _rule_json(rule)}
        print_json({name: facts for name, facts in found.items() if facts})
        return
    if kind is not None:
        _show_kind(kind)
    if rule is not None:
        if kind is not None:
            click.echo()
        _show_rule(rule)


def _show_model(*, as_json: bool) -> None:
    """Explain the model that is asked where no rule is sure."""
    if as_json:
        print_json({"rule": {"id": learned.RULE, "why": learned.WHY}})
        return
    click.echo(f"{click.style(learned.RULE, bold=True, fg='cyan')}  {click.style('(model)', dim=True)}")
    click.echo(paragraph(learned.WHY) + "\n")
    print_row(
        "confidence",
        f"at least {learned.MIN_CONFIDENCE:.0%}; {learned.MIN_CONFIDENCE_AGAINST_RULE:.0%} against a rule that is not sure",
    )
    print_row("of a retry", f"at least {learned.MIN_CONFIDENCE_TO_REPEAT:.0%} for a kind that is retried")
    print_row("of a limit", f"at least {learned.MIN_CONFIDENCE_OF_LIMIT:.0%} for a limit, which makes a run wait")
    print_row("see", "`rung classify` prints its strongest words for an error")


def _find(name: str) -> tuple[Kind | None, ClassifyRule | None]:
    """Return the kind and the rule of this name; `overloaded` is both."""
    key = name.strip().lower()
    kind = next((kind for kind in Kind if kind == key.replace("-", "_")), None)
    return kind, next((rule for rule in rules() if rule.id == key.replace("_", "-")), None)


def _unknown_name(name: str) -> UsageError:
    """Return the error about a name that is nothing of all that can be explained."""
    near = suggest_names(name.strip().lower(), [*Kind, *(rule.id for rule in rules())])
    return UsageError(
        f"{name!r} is not a kind, a rule or the id of a session with a failure (`rung explain` lists the kinds){near}"
    )


def _entry_rungs(ladder: Ladder, kind: Kind) -> list[dict[str, Any]]:
    """Return where a kind enters a ladder; a loop enters higher with more repeats."""
    names = [(0, ladder.entry.get(kind, ladder.default_entry))]
    if kind is Kind.LOOP_DETECTED:
        names += [(repeats, name) for repeats, name in ladder.loops if name != names[0][1]]
    return [{"level": ladder.level(ladder.index(name)), "rung": name, "repeats": repeats} for repeats, name in names]


def _entry_text(entry: dict[str, Any]) -> str:
    since = f" from {entry['repeats']} repeats" if entry["repeats"] else ""
    return f"{entry['level']} {entry['rung']}{since}"


def _kind_json(kind: Kind) -> dict[str, Any]:
    from rung.core.classify.guide.work import GUIDES

    guide = GUIDES[kind]
    return {
        "name": kind.value,
        "group": _group(kind),
        "summary": guide.summary,
        "looks": guide.looks,
        "helps": list(guide.helps),
        "avoid": guide.avoid,
        "enters": {ladder.name: _entry_rungs(ladder, kind) for ladder in LADDERS.values()},
        "rules": [rule.id for rule in rules() if rule.kind is kind],
    }


def _rule_json(rule: ClassifyRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "kind": rule.kind.value,
        "why": rule.why,
        "retryable": rule.retryable,
        "asks_for": describe_conditions(rule),
        "example": evidence_fields(rule.example),
    }


def evidence_fields(evidence: Evidence) -> dict[str, Any]:
    """Return the fields of the evidence that are set."""
    return {name: value for name, value in evidence._asdict().items() if value != evidence._field_defaults[name]}


def _group(kind: Kind) -> str:
    return next(name for name, kinds in GROUPS.items() if kind in kinds)


def _show_all(*, as_json: bool) -> None:
    from rung.core.classify.guide.work import GUIDES

    if as_json:
        print_json({"kinds": {name: {kind.value: GUIDES[kind].summary for kind in GROUPS[name]} for name in GROUPS}})
        return
    for name, kinds in GROUPS.items():
        click.secho(name, bold=True)
        for kind in kinds:
            print_row(kind, GUIDES[kind].summary, 22)


def _show_kind(kind: Kind) -> None:
    from rung.core.classify.guide.work import GUIDES

    guide = GUIDES[kind]
    click.echo(f"{click.style(kind, bold=True, fg='cyan')}  {click.style(f'({_group(kind)})', dim=True)}")
    click.echo(paragraph(guide.summary) + "\n")
    print_row("looks like", guide.looks)
    print_row("what helps", guide.helps)
    print_row("avoid", guide.avoid)
    print_row(
        "enters at", [f"{name}: {', '.join(map(_entry_text, _entry_rungs(LADDERS[name], kind)))}" for name in LADDERS]
    )
    found = [f"{rule.id}: {rule.why}" for rule in rules() if rule.kind is kind]
    print_row("found by", found or "a detector, a judge or the attempt itself; no rule")


def _show_rule(rule: ClassifyRule) -> None:
    click.echo(f"{click.style(rule.id, bold=True, fg='cyan')}  {click.style('(rule)', dim=True)}")
    click.echo(paragraph(rule.why) + "\n")
    print_row("kind", rule.kind)
    print_row("retryable", "yes" if rule.retryable else "no")
    print_row("matches", [f"{name}: {', '.join(values)}" for name, values in describe_conditions(rule).items()])
    facts = evidence_fields(rule.example).items()
    print_row("example", [f"{name}: {', '.join(v) if isinstance(v, tuple) else v}" for name, v in facts])
