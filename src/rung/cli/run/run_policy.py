"""Policy of `rung run`: that of the options or of the file, with the agents and models that its commands can use."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from rung.adapters.system.placeholders import uses_placeholder
from rung.adapters.system.process import MODEL_PLACEHOLDER
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal


def policy_of_run(options: dict[str, Any], journal: Journal | None, agents: Mapping[str, Sequence[str]]) -> Policy:
    """Return the policy, with the fallback commands as its agents.

    A fallback that gets the model shares the account of the first command; any other is taken to have its own. Models that the
    first command cannot be given are no fallback: it would run the identical command.
    """
    if options["retries"] == 0 and (len(agents) > 1 or len(options["models"]) > 1):
        allowed = "1 or more with a fallback or several models: 0 switches recovery off (--escalate-after 0 hands over at once)"
        raise ConfigError("--retries", 0, allowed)
    policy = _policy(options, journal, program_name(agents[""]))
    if options["resume_session"] is not None:
        policy = policy.replace(resume_sessions=options["resume_session"])
    takes_model = {name: uses_placeholder(words, MODEL_PLACEHOLDER) for name, words in agents.items()}
    if len(options["models"]) > 1 and not any(takes_model.values()):
        raise ConfigError("--model", options["models"][1], "given once, or used: no command has {model}")
    fallbacks = [name for name in agents if name]
    policy = policy.replace(
        agents=tuple(fallbacks),
        same_account=tuple(name for name in fallbacks if takes_model[name] and takes_model[""]),
        report=policy.report or _default_report(options),
    )
    if takes_model[""] or len(policy.models) <= 1:
        return policy
    click.echo("rung: the command has no {model}: it is never handed over to another model", err=True)
    return policy.replace(models=policy.models[:1])


def _default_report(options: dict[str, Any]) -> str:
    """File for the report of a blocked run; none if `--report` is empty."""
    from rung.core.policy.policy import BLOCKED_REPORT

    return BLOCKED_REPORT if options["report"] is None else ""


def program_name(command: Sequence[str]) -> str:
    """Return the name of a command's program, which `[tools.NAME]` of a policy file is about."""
    return PurePath(command[0]).name


def _policy(options: dict[str, Any], journal: Journal | None, tool: str) -> Policy:
    from rung.core.policy.parser import parse_policy
    from rung.core.policy.presets import LADDERS

    keys = (
        "template",
        "retries",
        "escalate_after",
        "attempts",
        "seconds",
        "dollars",
        "patience",
        "attempt_seconds",
        "report",
    )
    settings = {key: options[key] for key in keys if options[key] is not None}
    if options["models"]:
        settings["models"] = list(options["models"])
    name = options["policy_name"]
    if name in LADDERS:
        return parse_policy({"ladder": name, **settings})
    if name is None:
        from rung.wiring.policies import PolicyStore, file_book

        book = file_book()
        base = (
            book.policy_for(options["project"], tool)
            if journal is None
            else PolicyStore(journal, book).pick(options["project"], tool)
        )
        return parse_policy(settings, base=base)
    from rung.core.classify.classifier import use_rules
    from rung.wiring.files import load_policy

    book = load_policy(name)
    use_rules(*book.rules)
    return parse_policy(settings, base=book.policy_for(options["project"], tool))
