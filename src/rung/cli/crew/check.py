"""`rung crew check`: checks a plan, and prints the order of its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rung.cli.help_text import epilogue
from rung.cli.output import json_option, pluralize, print_json

if TYPE_CHECKING:
    from rung.core.crew.plan import CrewPlan


class LoadedPlan(NamedTuple):
    """A plan with the content of its file and the folder that its paths are relative to."""

    content: dict[str, Any]
    plan: CrewPlan
    folder: Path


def load_plan(file: Path) -> LoadedPlan:
    """Return a valid plan whose programs exist; an error names the file. Tasks that nobody would check are told."""
    from rung.core.crew.plan import checked_plan
    from rung.core.domain.errors import ConfigError, FileError
    from rung.crew.plan_sync import require_programs, unchecked_tasks
    from rung.wiring.toml_reader import read_table

    content, folder = read_table(file), file.parent.resolve()
    try:
        plan = checked_plan(content)
        require_programs(plan, folder)
    except ConfigError as error:
        raise FileError(file, str(error), error.key, error.value, error.allowed) from None
    for name in unchecked_tasks(plan):
        click.echo(
            f"rung: {name}: rung worker run has no --check, and the crew no judge and no person to review", err=True
        )
    return LoadedPlan(content, plan, folder)


@click.command("check", epilog=epilogue(examples=("rung crew check plan.toml",)))
@click.argument("plan", type=click.Path(path_type=Path))
@json_option
def check(plan: Path, *, as_json: bool) -> None:
    """Check PLAN and its programs, and print its tasks in the order they would start, without running them."""
    from rung.core.crew.dependencies import parallel_groups

    made = load_plan(plan).plan
    turns = parallel_groups(made.dependencies())
    if as_json:
        print_json({"crew": made.name, "workers": made.settings.workers, "turns": turns})
        return
    click.echo(f"{made.name}: {pluralize(len(made.active_tasks), 'task')}, {made.settings.workers} at once")
    for number, turn in enumerate(turns, 1):
        click.echo(f"{number}. {', '.join(turn)}")
