"""`rung policy`: shows and checks policies, and lists the templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.command_group import CommandGroup
from rung.cli.complete_names import complete_ladder, complete_template
from rung.cli.help_text import epilogue
from rung.cli.output import (
    format_seconds,
    format_worst_case,
    json_option,
    paragraph,
    pluralize,
    print_json,
    print_row,
)
from rung.core.domain.dollars import format_dollars
from rung.core.domain.failures import Kind
from rung.core.policy.serializer import policy_table, worst_case_table
from rung.core.policy.templates import TEMPLATE_DESCRIPTIONS, TEMPLATES, preset
from rung.core.policy.worst_case import worst_case

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.policy.learn_settings import LearnSettings
    from rung.core.policy.policy import Model, Policy
    from rung.core.policy.stalls import StallLimits

LABEL_WIDTH: Final = 18


@click.group(cls=CommandGroup)
def command() -> None:
    """Show and check policies, with the worst case they allow."""


@command.command("show", epilog=epilogue(examples=("rung policy show task --template unattended",)))
@click.argument("ladder", default="task", shell_complete=complete_ladder)
@click.option(
    "--template",
    "-t",
    default="default",
    show_default=True,
    metavar="NAME",
    shell_complete=complete_template,
    help=f"Template: {', '.join(TEMPLATES)}.",
)
@json_option
def show(ladder: str, template: str, *, as_json: bool) -> None:
    """Show the policy of a LADDER (default: task) under a template."""
    policy = preset(ladder, template)
    if as_json:
        print_json({"policy": policy_table(policy), "worst_case": worst_case_table(policy)})
        return
    click.secho(f"{policy.ladder.name}, {template}", bold=True)
    click.echo(paragraph(TEMPLATE_DESCRIPTIONS[template]) + "\n")
    _print_settings(settings_text(policy))
    _print_worst_case(policy)


@command.command("templates", epilog=epilogue(examples=("rung policy templates",)))
@json_option
def templates(*, as_json: bool) -> None:
    """List the templates, and what each sets on the task ladder."""
    policies = {name: preset("task", name) for name in TEMPLATES}
    if as_json:
        print_json({"templates": [{"name": name, "about": TEMPLATE_DESCRIPTIONS[name]} for name in policies]})
        return
    plain = settings_text(policies["default"])
    texts = {name: _differing(policy, plain) for name, policy in policies.items()}
    texts["default"] = {key: plain[key] for key in plain if any(key in other for other in texts.values())}
    for name in policies:
        click.secho(name, bold=True)
        click.echo(paragraph(TEMPLATE_DESCRIPTIONS[name], indent=2))
        _print_settings({key: value for key, value in texts[name].items() if key != "name"})


@command.command("check", epilog=epilogue(examples=("rung policy check rung.toml",)), short_help="Check a policy file.")
@click.argument("file", metavar="FILE")
@json_option
def check(file: str, *, as_json: bool) -> None:
    """Check a policy file; print the policy of each project and tool, and what each way in does with it."""
    from rung.cli.policy.ways_in import policies_of_ways_in, way_in_table, way_in_text
    from rung.wiring.settings_file import named

    settings = named(file)
    book = settings.book()
    ways_in = policies_of_ways_in(settings)
    projects = {name: book.policy_for(project=name) for name in book.projects}
    tools = {name: book.policy_for(tool=name) for name in book.tools}
    if as_json:
        print_json(
            {
                "ok": True,
                "file": file,
                "default": _policy_json(book.default),
                "projects": {name: _policy_json(policy) for name, policy in projects.items()},
                "tools": {name: _policy_json(policy) for name, policy in tools.items()},
                "ways_in": {name: way_in_table(policy) for name, policy in ways_in.items()},
            }
        )
        return
    click.echo(f"{click.style('OK', fg='green', bold=True)}  {file}\n")
    click.secho("default", bold=True)
    plain = settings_text(book.default)
    _print_settings(plain)
    _print_worst_case(book.default)
    for sort, policies in (("project", projects), ("tool", tools)):
        for name, policy in policies.items():
            click.echo(f"\n{click.style(f'{sort} {name}', bold=True)}  {click.style('differs in', dim=True)}")
            _print_settings(_differing(policy, plain))
            _print_worst_case(policy)
    for name, policy in ways_in.items():
        click.echo(f"\n{click.style(f'way in: {name}', bold=True)}")
        _print_settings(way_in_text(policy))


def _differing(policy: Policy, plain: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings_text(policy).items() if value != plain[key]}


def _policy_json(policy: Policy) -> dict[str, Any]:
    return {"policy": policy_table(policy), "worst_case": worst_case_table(policy)}


def settings_text(policy: Policy) -> dict[str, str]:
    """Return every setting of a policy as text, by key."""
    backoff, budget = policy.backoff, policy.budget
    cap = "no cap" if budget.attempts is None else pluralize(budget.attempts, "attempt")
    cap += " (probes of a failing service not counted: patience)" if policy.patience and budget.attempts else ""
    money = "any cost" if budget.dollars is None else format_dollars(budget.dollars)
    pauses = (
        f"{format_seconds(backoff.base)}, times {backoff.multiplier:g} each time, at most {format_seconds(backoff.cap)}"
    )
    return {
        "name": policy.name,
        "ladder": f"{policy.ladder.name}: {' → '.join(f'{r.name} ({r.tries})' for r in policy.ladder.rungs)}",
        "budget": f"{cap}, {format_seconds(budget.seconds)}, {money}",
        "backoff": f"{pauses}, {'with full jitter' if backoff.jitter else 'without jitter'}",
        "retry": ", ".join(kind for kind in Kind if kind in policy.retry) or "nothing",
        "retry_after_cap": format_seconds(policy.retry_after_cap),
        "patience": format_seconds(policy.patience) if policy.patience else "none",
        "park": format_seconds(policy.park) if policy.park else "none",
        "attempt_seconds": "no limit" if policy.attempt_seconds is None else format_seconds(policy.attempt_seconds),
        "stalls": _stalls_text(policy.stalls),
        "retry_budget": "shared by the process" if policy.retry_budget else "no: retries are not limited together",
        "breaker": "yes" if policy.breaker else "no: attempts are never rejected",
        "models": " → ".join(map(_model_text, policy.models)) or "none",
        "agents": " → ".join(policy.agents) or "none",
        "same_account": "as the request says"
        if policy.same_account is None
        else ", ".join(policy.same_account) or "none",
        "auto_escalate": "yes" if policy.auto_escalate else "no: an operator confirms first",
        "escalate_after": "when the rungs below are used up"
        if policy.escalate_after is None
        else pluralize(policy.escalate_after, "retry", "retries"),
        "confirm": {"never": "never", "more_expensive": "for a more expensive model", "always": "always"}[
            policy.confirm
        ],
        "sticky": f"a handover lasts for the {policy.sticky}",
        "unattended": "yes: no operator can be asked" if policy.unattended else "no",
        "checkpoints": "yes" if policy.checkpoints else "no",
        "report": policy.report or "none",
        "prompts": ", ".join(policy.prompts) or "built-in",
        "resume_sessions": "yes: an agent goes on in its own session" if policy.resume_sessions else "no",
        "elide_text": "yes: long texts may be cut in their middle" if policy.elide_text else "no",
        "learn": _learn_text(policy.learn),
    }


def _stalls_text(stalls: StallLimits) -> str:
    if not stalls.enabled:
        return "never"
    at_least = f"at least {format_seconds(stalls.min_seconds)}"
    return (
        f"no progress for {stalls.factor:g} times the slowest of {stalls.samples} or more similar attempts, {at_least}"
    )


def _learn_text(learn: LearnSettings) -> str:
    if not learn.enabled:
        return "no"
    data = f"{learn.min_attempts} or more tries in {format_seconds(learn.window)}"
    return f"yes: follow what helped before ({data}); {learn.explore:.0%} of incidents take the ladder's own order"


def _model_text(model: Model) -> str:
    return f"{model.name} ({format_dollars(model.cost)})" if model.cost else model.name


def _print_settings(texts: Mapping[str, str]) -> None:
    for key, value in texts.items():
        print_row(key, value, LABEL_WIDTH)


def _print_worst_case(policy: Policy) -> None:
    label = click.style(f"{'worst case':<{LABEL_WIDTH}}", dim=True)
    click.echo(f"  {label}{click.style(format_worst_case(worst_case(policy)), bold=True)}")
