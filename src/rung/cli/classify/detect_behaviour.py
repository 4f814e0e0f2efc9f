"""`rung detect behaviour`: violated constraints, claims against the evidence, answers beside the task."""

from __future__ import annotations

from typing import Any

import click

from rung.cli.classify.trajectories import answer_lines, steps_of
from rung.cli.help_text import epilogue
from rung.cli.usage import UsageError


@click.command(
    "behaviour",
    short_help="Find violated constraints and unsupported claims.",
    epilog=epilogue(examples=("rung detect behaviour --jsonl sessions.jsonl",)),
)
@click.argument("file", required=False)
@click.option("--jsonl", is_flag=True, help="Read one trajectory per line, print one answer per line.")
@click.option("--root", default="", metavar="DIR", help="Directory that relative paths of the task mean.")
def behaviour(file: str | None, root: str, *, jsonl: bool) -> None:
    """Find what loops do not show: violated constraints, claims against the evidence, answers beside the task.

    Each line of FILE (or of a pipe) is a trajectory, {"id", "task", "answer", "steps": [{"i", "tool", "args", "result",
    "error"}]}. Without a task no constraint is known; without an answer nothing is said about it. The answer to a line is
    {"id", "findings": [{"at", "rule", "kind", "text"}]}, where "at" is the step, or null for the answer.
    """
    answer_lines(file, lambda row, where: _review(row, where, root), jsonl=jsonl)


def _review(row: dict[str, Any], where: str, root: str) -> dict[str, Any]:
    from rung.detectors.behaviour.review import review

    steps = list(steps_of(row, where))
    findings = review(_text(row, "task", where) or "", steps, _text(row, "answer", where), root=root)
    return {
        "id": row.get("id"),
        "findings": [
            {
                "at": None if one.at is None else row["steps"][one.at].get("i", one.at),
                "rule": one.rule,
                "kind": one.kind.value,
                "text": one.text,
            }
            for one in findings
        ],
    }


def _text(row: dict[str, Any], name: str, where: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{where}: {name}: {value!r} is invalid; must be a text, or left out")
    return value
