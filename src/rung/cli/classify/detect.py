"""`rung detect`: runs the detectors over recorded steps, tasks and answers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from rung.cli.classify.detect_behaviour import behaviour
from rung.cli.classify.trajectories import answer_lines, steps_of
from rung.cli.command_group import CommandGroup
from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option, project_option
from rung.cli.numbers import SECONDS
from rung.cli.output import json_text
from rung.cli.usage import UsageError
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.session_monitor import SessionMonitor


@click.group(cls=CommandGroup)
def command() -> None:
    """Detect loops, stalls, bad behaviour and bad outputs in what an agent did."""


command.add_command(behaviour)


@command.command(
    "loops",
    epilog=epilogue(examples=("rung detect loops --jsonl sessions.jsonl",)),
    short_help="Find loops in trajectories.",
)
@click.argument("file", required=False)
@click.option("--jsonl", is_flag=True, help="Read one trajectory per line, print one answer per line.")
@click.option("--policy", "policy_file", metavar="FILE", help="Use the [loops] table of a policy file.")
@click.option("--all", "every", is_flag=True, help="Print every finding of a trajectory, not only the first.")
def loops(file: str | None, policy_file: str | None, *, jsonl: bool, every: bool) -> None:
    """Find loops: repeated calls with the same outcome.

    Each line of FILE (or of a pipe) is a trajectory, {"id", "steps": [{"i", "tool", "args", "result", "error"}]}.
    The detectors run after every step, as in a live session. The answer to a line is {"id", "loop", "at", "rule"},
    where "at" is the step at which the loop was first detected.
    """
    settings = _loop_settings(policy_file)
    answer_lines(file, lambda row, where: _check_trajectory(row, where, settings, every=every), jsonl=jsonl)


def _loop_settings(policy_file: str | None) -> LoopSettings:
    if policy_file is None:
        return LoopSettings()
    from rung.wiring.files import load_loop_settings

    return load_loop_settings(policy_file)


def _check_trajectory(row: dict[str, Any], where: str, settings: LoopSettings, *, every: bool) -> dict[str, Any]:
    monitor = SessionMonitor(settings)
    found: list[dict[str, Any]] = []
    for position, (table, step) in enumerate(zip(row["steps"], steps_of(row, where), strict=False)):
        finding = monitor.check(step)
        if finding is not None:
            found.append(
                {
                    "at": table.get("i", position),
                    "rule": finding.rule,
                    "count": finding.count,
                    "repeats": finding.repeats,
                    "stage": finding.stage,
                    "news": finding.is_new_stage,
                    "text": finding.text,
                }
            )
            if not every:
                break
    first = found[0] if found else {"at": None, "rule": None}
    answer = {"id": row.get("id"), "loop": bool(found), "at": first["at"], "rule": first["rule"]}
    return {**answer, "findings": found} if every else answer


@command.command(
    "stalls",
    epilog=epilogue(examples=("rung detect stalls --silence 600",)),
    short_help="Find tasks that take longer than usual.",
)
@journal_option
@project_option
@click.option(
    "--silence",
    type=SECONDS,
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds without an event after which a task is silent.",
)
@click.option(
    "--factor",
    type=SECONDS,
    default=2.0,
    show_default=True,
    metavar="N",
    help="Multiple of the 95th percentile of such tasks' durations.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def stalls(journal_at: str | None, project: str | None, *, silence: float, factor: float, as_json: bool) -> None:
    """Find open tasks that run longer than usual, by the journal's history, or that are silent for too long.

    Exit code 1 if there are any.
    """
    from rung.detectors.stalls import StallThresholds
    from rung.wiring.stalls import stalls as found_in

    thresholds = StallThresholds(silence_seconds=silence, factor=factor)
    with existing_journal(journal_at) as journal:
        found = found_in(journal, time.time(), thresholds, project)
    for row, finding in found:
        line = {"incident": row.id, "project": row.project, "rule": finding.rule, "text": finding.text}
        click.echo(json_text(line) if as_json else f"{finding.rule}: {finding.text}")
    sys.exit(1 if found else 0)


@command.command(
    "output", epilog=epilogue(examples=("rung detect output --expect-json answer.txt",)), short_help="Check an answer."
)
@click.argument("file", required=False)
@click.option("--expect-json", is_flag=True, help="The answer must be JSON.")
@click.option("--section", "sections", multiple=True, help="Heading or key that the answer must have. May be repeated.")
@click.option("--evidence", is_flag=True, help="A claim of being done must show evidence.")
@click.option("--stop-reason", default="", help="Stop reason, as the provider reported it.")
def output(file: str | None, *, expect_json: bool, sections: tuple[str, ...], evidence: bool, stop_reason: str) -> None:
    """Check an answer: truncated, empty, malformed, partial, gave up, or claims to be done without evidence.

    Prints one JSON object: ok, and the finding. Exit code 1 if there is a finding.
    """
    from rung.detectors.output import OutputSpec, check_output

    if file is None and sys.stdin.isatty():
        raise click.UsageError("No input: give FILE, or pipe an answer in.")
    try:
        raw = sys.stdin.buffer.read() if file in (None, "-") else Path(str(file)).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    spec = OutputSpec(json=expect_json, sections=sections, evidence=evidence)
    found = check_output(raw.decode("utf-8", "replace"), spec, stop_reason=stop_reason)
    answer: dict[str, Any] = {"ok": found is None}
    if found is not None:
        answer |= {"rule": found.rule, "kind": found.kind.value, "text": found.text, "missing": list(found.missing)}
    click.echo(json_text(answer))
    sys.exit(0 if found is None else 1)
