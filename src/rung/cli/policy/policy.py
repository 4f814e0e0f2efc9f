"""`rung policy`: what a policy amounts to, whether a file of one's own is right, and the templates there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.output import as_json, count, dollars, paragraph, print_json, row, seconds, worst
from rung.core.domain.failures import Kind
from rung.core.policy.policy import TEMPLATE_DESCRIPTIONS, TEMPLATES, preset, worst_case
from rung.core.policy.serializer import policy_table, worst_case_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.policy.policy import Model, Policy

LABEL: Final = 18


@click.group(short_help="Show and check policies.")
def command() -> None:
    """Show and check policies, with the worst case they allow."""


@command.command("show")
@click.argument("ladder", default="task")
@click.option("--template", "-t", default="default", metavar="T", help="One of " + ", ".join(TEMPLATES) + ".")
@as_json
def show(ladder: str, template: str, *, as_json: bool) -> None:
    """Show the policy of a LADDER (default: task) under a template."""
    policy = preset(ladder, template)
    if as_json:
        print_json({"policy": policy_table(policy), "worst_case": worst_case_table(policy)})
        return
    click.secho(f"{policy.ladder.name}, {template}", bold=True)
    click.echo(paragraph(TEMPLATE_DESCRIPTIONS[template]) + "\n")
    _show(policy_words(policy))
    _at_most(policy)


@command.command("templates")
@as_json
def templates(*, as_json: bool) -> None:
    """List the templates, and what each sets on the task ladder."""
    policies = {name: preset("task", name) for name in TEMPLATES}
    if as_json:
        print_json({"templates": [{"name": name, "about": TEMPLATE_DESCRIPTIONS[name]} for name in policies]})
        return
    plain = policy_words(policies["default"])
    words = {name: _differing(policy, plain) for name, policy in policies.items()}
    words["default"] = {key: plain[key] for key in plain if any(key in other for other in words.values())}
    for name in policies:
        click.secho(name, bold=True)
        click.echo(paragraph(TEMPLATE_DESCRIPTIONS[name], indent=2))
        _show({key: value for key, value in words[name].items() if key != "name"})


@command.command("check")
@click.argument("file", metavar="FILE")
@as_json
def check(file: str, *, as_json: bool) -> None:
    """Check a policy file; print the policy of each project and tool, and the worst case it allows."""
    from rung.wiring.files import load_policy

    book = load_policy(file)
    projects = {name: book.policy_for(project=name) for name in book.projects}
    tools = {name: book.policy_for(tool=name) for name in book.tools}
    if as_json:
        print_json(
            {
                "ok": True,
                "file": file,
                "default": _checked(book.default),
                "projects": {name: _checked(policy) for name, policy in projects.items()},
                "tools": {name: _checked(policy) for name, policy in tools.items()},
            }
        )
        return
    click.echo(f"{click.style('OK', fg='green', bold=True)}  {file}\n")
    click.secho("default", bold=True)
    plain = policy_words(book.default)
    _show(plain)
    _at_most(book.default)
    for sort, policies in (("project", projects), ("tool", tools)):
        for name, policy in policies.items():
            click.echo(f"\n{click.style(f'{sort} {name}', bold=True)}  {click.style('differs in', dim=True)}")
            _show(_differing(policy, plain))
            _at_most(policy)


def _differing(policy: Policy, plain: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in policy_words(policy).items() if value != plain[key]}


def _checked(policy: Policy) -> dict[str, Any]:
    return {"policy": policy_table(policy), "worst_case": worst_case_table(policy)}


def policy_words(policy: Policy) -> dict[str, str]:
    """Every setting of a policy by its key, as a person would say it."""
    backoff, budget = policy.backoff, policy.budget
    cap = "no cap" if budget.attempts is None else count(budget.attempts, "attempt")
    money = "any cost" if budget.dollars is None else dollars(budget.dollars)
    pauses = f"{seconds(backoff.base)}, times {backoff.multiplier:g} each time, at most {seconds(backoff.cap)}"
    return {
        "name": policy.name,
        "ladder": f"{policy.ladder.name}: {' → '.join(f'{r.name} ({r.tries})' for r in policy.ladder.rungs)}",
        "budget": f"{cap}, {seconds(budget.seconds)}, {money}",
        "backoff": f"{pauses}, {'with full jitter' if backoff.jitter else 'without jitter'}",
        "retry": ", ".join(kind for kind in Kind if kind in policy.retry) or "nothing",
        "retry_after_cap": seconds(policy.retry_after_cap),
        "attempt_seconds": "no limit of its own" if policy.attempt_seconds is None else seconds(policy.attempt_seconds),
        "models": " → ".join(map(_model_words, policy.models)) or "none to hand over to",
        "agents": " → ".join(policy.agents) or "none to hand over to",
        "auto_escalate": "yes" if policy.auto_escalate else "no: a person agrees first",
        "escalate_after": count(policy.escalate_after, "failure"),
        "confirm": {"never": "nobody is asked", "more_expensive": "for a dearer model", "always": "always"}[
            policy.confirm
        ],
        "sticky": f"a hand-over lasts for the {policy.sticky}",
        "unattended": "yes: nobody can be asked" if policy.unattended else "no",
        "checkpoints": "yes" if policy.checkpoints else "no",
        "report": policy.report or "none is written",
        "prompts": ", ".join(policy.prompts) or "as they ship",
        "learn": "yes: begin where it helped before" if policy.learn else "no",
    }


def _model_words(model: Model) -> str:
    return f"{model.name} ({dollars(model.cost)})" if model.cost else model.name


def _show(words: Mapping[str, str]) -> None:
    for key, value in words.items():
        row(key, value, LABEL)


def _at_most(policy: Policy) -> None:
    label = click.style(f"{'at the very most':<{LABEL}}", dim=True)
    click.echo(f"  {label}{click.style(worst(worst_case(policy)), bold=True)}")
