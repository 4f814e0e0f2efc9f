"""`rung doctor`: checks the installation and what it depends on, and prints the commands that fix it."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.doctor.finding import State
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, paragraph, pluralize, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.cli.doctor.finding import DoctorFinding

_MARKS: Final = {State.OK: "ok", State.INFO: "-", State.WARNING: "warn", State.BROKEN: "BAD"}
_COLOURS: Final = {State.OK: "green", State.INFO: None, State.WARNING: "yellow", State.BROKEN: "red"}
_INDENT: Final = 6


@click.command(
    epilog=epilogue(
        "It repairs nothing by itself, and asks only servers of this machine and those that you name. Keys are named, their values "
        "are not printed.",
        "Exit codes: 0 nothing is broken, 1 something is; warnings do not count.",
        examples=("rung doctor", "rung doctor --json"),
    )
)
@click.option("--journal", metavar="PATH|URL", help="Journal to check (default: the one that commands use).")
@click.option("--service", metavar="URL", help="Service that must answer (default: http://127.0.0.1:8642, if it runs).")
@click.option(
    "--gateway",
    metavar="URL",
    help="Gateway that must answer (default: that of rung.toml or http://127.0.0.1:8484, if it runs).",
)
@json_option
def command(*, journal: str | None, service: str | None, gateway: str | None, as_json: bool) -> None:
    """Check versions, extras, journal, settings, servers, hooks, agents and keys; print what fixes each problem."""
    from rung.cli.doctor.agents import check_agents, check_hooks, check_keys
    from rung.cli.doctor.installation import check_clock, check_extras, check_versions
    from rung.cli.doctor.probes import run_checks
    from rung.cli.doctor.servers import check_servers
    from rung.cli.doctor.settings import check_settings
    from rung.cli.doctor.storage import check_journal
    from rung.wiring.trust import use_terminal

    use_terminal(lambda _: None, lambda _: None)  # a diagnosis asks nobody; what is not trusted is a finding
    groups = run_checks(
        {
            "versions": check_versions,
            "extras": check_extras,
            "clock": check_clock,
            "journal": partial(check_journal, journal),
            "settings": check_settings,
            "servers": partial(check_servers, service, gateway),
            "hooks": check_hooks,
            "agents": check_agents,
            "keys": check_keys,
        }
    )
    broken = _count(groups, State.BROKEN)
    if as_json:
        print_json(_document(groups))
    else:
        _print(groups)
    sys.exit(1 if broken else 0)


def _count(groups: Mapping[str, Sequence[DoctorFinding]], state: State) -> int:
    return sum(finding.state is state for findings in groups.values() for finding in findings)


def _document(groups: Mapping[str, Sequence[DoctorFinding]]) -> dict[str, Any]:
    """Return the diagnosis as JSON; its schema is `rung schema doctor`."""
    return {
        "ok": not _count(groups, State.BROKEN),
        "broken": _count(groups, State.BROKEN),
        "warnings": _count(groups, State.WARNING),
        "findings": [
            {
                "group": group,
                "name": finding.name,
                "state": finding.state.value,
                "detail": _clean(finding.detail),
                "fix": finding.fix or None,
                "facts": dict(finding.facts),
            }
            for group, findings in groups.items()
            for finding in findings
        ],
    }


def _print(groups: Mapping[str, Sequence[DoctorFinding]]) -> None:
    for group, findings in groups.items():
        click.secho(group.capitalize(), bold=True)
        for finding in findings:
            mark = click.style(f"{_MARKS[finding.state]:<{_INDENT - 1}}", fg=_COLOURS[finding.state])
            text = paragraph(f"{finding.name}: {_clean(finding.detail)}", indent=_INDENT, hang=2)
            click.echo(f" {mark}{text[_INDENT:]}")
            if finding.fix:
                click.echo(f"{' ' * _INDENT}  fix: {finding.fix}")
    broken, warnings = _count(groups, State.BROKEN), _count(groups, State.WARNING)
    verdict = (
        f"{pluralize(broken, 'problem')}, {pluralize(warnings, 'warning')}" if broken or warnings else "all is well"
    )
    click.secho(f"\n{verdict.capitalize()}.", bold=True)


def _clean(text: str) -> str:
    """Return a text on one line, without secrets: errors of drivers may quote an address with its password."""
    from rung.core.classify.redaction import redacted

    return redacted(" ".join(text.split()))
