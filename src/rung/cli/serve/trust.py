"""`rung trust`: decides which settings files of directories may run commands, name upstreams and move the journal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rung.cli.help_text import epilogue
from rung.cli.output import json_option, print_json
from rung.wiring.trust import Decision

if TYPE_CHECKING:
    from rung.wiring.settings_file import SettingsFile

EPILOG = epilogue(
    "A rung.toml in a working directory may come with a repository that you cloned. Until you trust it, it is policy data "
    "alone: it runs no command, names no upstream, key or journal, and can only lower your limits. Trust is given to one "
    "path with one content: a changed file is asked about again. Files that you name in an option need no trust.",
    examples=("rung trust", "rung trust --deny ~/clone", "rung trust --list"),
)

_DECISIONS = {None: Decision.TRUSTED, "deny": Decision.DENIED, "forget": Decision.UNDECIDED}


@click.command(epilog=EPILOG)
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@click.option("--deny", "action", flag_value="deny", help="Use only its policy, and do not ask again.")
@click.option("--forget", "action", flag_value="forget", help="Withdraw the decision.")
@click.option("--list", "action", flag_value="list", help="List the files, and the decisions about them.")
@json_option
def command(path: Path, *, action: str | None, as_json: bool) -> None:
    """Trust the rung.toml at PATH (a file or its directory; default: the working directory) with its present content."""
    from rung.wiring import settings_file, trust

    if action == "list":
        files = settings_file.known_files()
        if as_json:
            print_json({"files": [trust_json(file) for file in files]})
        elif files:
            click.echo("\n".join(map(trust_line, files)))
        return
    file = settings_file.inspect_file(path)
    trust.decide(file.path, file.content, _DECISIONS[action])
    file = settings_file.inspect_file(path)
    if as_json:
        print_json(trust_json(file))
    else:
        click.echo(trust_line(file))


def trust_json(file: SettingsFile) -> dict[str, object]:
    """Return the decision about a file as JSON."""
    return {"path": file.place, "decision": file.decision.value, "sets": list(file.withheld)}


def trust_line(file: SettingsFile) -> str:
    """Return the decision about a file as one line."""
    return f"{file.decision.value:<10} {file.place}: sets {file.sets() or 'nothing that needs trust'}"


def ask_on_terminal(file: SettingsFile) -> Decision | None:
    """Ask the user about a file; None if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    click.echo(f"rung: {file.place} is not trusted. It sets: {file.sets()}", err=True)
    trusted = click.confirm("Trust this file? (no: only its policy is used)", default=False, err=True)
    return Decision.TRUSTED if trusted else Decision.DENIED
