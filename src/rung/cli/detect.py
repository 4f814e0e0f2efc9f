"""`rung detect`: what an agent's recorded steps show that nobody raised."""

from __future__ import annotations

import json
import sys
from typing import IO, Any

import click

from rung.cli.group import Misuse
from rung.core.errors import ConfigError
from rung.detectors.step import step_from
from rung.detectors.watch import Watch
from rung.detectors.watching import Watching


@click.group(short_help="Notice trouble nobody raised.")
def command() -> None:
    """Notice trouble nobody raised, in what an agent did."""


@command.command("loops", short_help="Which trajectories go in circles, and from which step.")
@click.argument("file", required=False)
@click.option("--jsonl", is_flag=True, help="One trajectory a line in, one answer a line out; no other form is read.")
@click.option("--policy", "policy_file", metavar="FILE", help="Use the [loops] table of a policy file.")
@click.option("--all", "every", is_flag=True, help="Every finding of a trajectory, not the first alone.")
def loops(file: str | None, policy_file: str | None, *, jsonl: bool, every: bool) -> None:
    r"""Find loops: the same calls with the same outcomes, over and over.

    Each line of FILE (or of a pipe) is a trajectory, {"id", "steps": [{"i", "tool", "args", "result", "error"}]}.
    After every step it is asked, as if live, whether the agent goes in circles; the answer to a line is
    {"id", "loop", "at", "rule"}, with the step at which it was first noticed.

    \b
    rung detect loops --jsonl trajectories.jsonl
    """
    if not jsonl:
        raise click.UsageError("Say --jsonl: one trajectory a line is the form that is read.")
    watching = _watching(policy_file)
    if file is None or file == "-":
        if file is None and sys.stdin.isatty():
            raise click.UsageError("Nothing to look at: give FILE, or pipe trajectories in.")
        _answer(sys.stdin.buffer, "standard input", watching, every=every)
        return
    try:
        lines = open(file, "rb")  # noqa: SIM115, PTH123  # closed below; a pipe's name is no pathlib matter
    except OSError as error:
        raise Misuse(f"{file}: cannot be read: {error.strerror}") from None
    with lines:
        _answer(lines, file, watching, every=every)


def _watching(policy_file: str | None) -> Watching:
    if policy_file is None:
        return Watching()
    from rung.wiring.files import load_watching

    return load_watching(policy_file)


def _answer(lines: IO[bytes], source: str, watching: Watching, *, every: bool) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            answer = _answered(line, f"{source}, line {number}", watching, every=every)
            sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
            sys.stdout.flush()  # whoever waits for this answer before sending the next gets it


def _answered(line: bytes, where: str, watching: Watching, *, every: bool) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Misuse(f"{where}: not JSON ({error}); every line is one trajectory") from None
    steps = row.get("steps") if isinstance(row, dict) else None
    if not isinstance(steps, list):
        raise Misuse(f'{where}: a trajectory is an object with "id" and a list of "steps"')
    watch = Watch(watching)
    found: list[dict[str, Any]] = []
    for position, table in enumerate(steps):
        try:
            step = step_from(table)
        except ConfigError as error:
            raise Misuse(f"{where}, step {position}: {error}") from None
        finding = watch.see(step)
        if finding is not None:
            found.append(
                {
                    "at": table.get("i", position),
                    "rule": finding.rule,
                    "count": finding.count,
                    "repeats": finding.repeats,
                    "stage": finding.stage,
                    "news": finding.news,
                    "text": finding.text,
                }
            )
            if not every:
                break
    first = found[0] if found else {"at": None, "rule": None}
    answer = {"id": row.get("id"), "loop": bool(found), "at": first["at"], "rule": first["rule"]}
    return {**answer, "findings": found} if every else answer
