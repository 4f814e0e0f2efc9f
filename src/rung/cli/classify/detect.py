"""`rung detect`: runs the detectors over recorded steps, tasks and answers."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import IO, Any

import click

from rung.cli.group import UsageError
from rung.cli.journal.option import existing_journal, journal_option
from rung.core.domain.errors import ConfigError
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import step_from


@click.group(short_help="Detect loops, stalls and bad outputs.")
def command() -> None:
    """Detect loops, stalls and bad outputs in what an agent did."""


@command.command("loops", short_help="Find loops in trajectories.")
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
    if not jsonl:
        raise click.UsageError("--jsonl is required: the only supported format is one trajectory per line.")
    settings = _loop_settings(policy_file)
    if file is None or file == "-":
        if file is None and sys.stdin.isatty():
            raise click.UsageError("No input: give FILE, or pipe trajectories in.")
        _check_stream(sys.stdin.buffer, "standard input", settings, every=every)
        return
    try:
        lines = open(file, "rb")  # noqa: SIM115, PTH123  # closed below; may be a pipe
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    with lines:
        _check_stream(lines, file, settings, every=every)


def _loop_settings(policy_file: str | None) -> LoopSettings:
    if policy_file is None:
        return LoopSettings()
    from rung.wiring.files import load_loop_settings

    return load_loop_settings(policy_file)


def _check_stream(lines: IO[bytes], source: str, settings: LoopSettings, *, every: bool) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            answer = _check_trajectory(line, f"{source}, line {number}", settings, every=every)
            sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
            sys.stdout.flush()  # the sender may wait for this answer before it sends the next line


def _check_trajectory(line: bytes, where: str, settings: LoopSettings, *, every: bool) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}); every line is one trajectory") from None
    steps = row.get("steps") if isinstance(row, dict) else None
    if not isinstance(steps, list):
        raise UsageError(f'{where}: a trajectory is an object with "id" and a list of "steps"')
    monitor = SessionMonitor(settings)
    found: list[dict[str, Any]] = []
    for position, table in enumerate(steps):
        try:
            step = step_from(table)
        except ConfigError as error:
            raise UsageError(f"{where}, step {position}: {error}") from None
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


@command.command("stalls", short_help="Find tasks that take longer than usual.")
@journal_option
@click.option("--project", help="Only this project.")
@click.option(
    "--silence",
    type=float,
    default=300.0,
    show_default=True,
    help="Seconds without an event after which a task is silent.",
)
@click.option(
    "--factor",
    type=float,
    default=2.0,
    show_default=True,
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
        click.echo(json.dumps(line) if as_json else f"{finding.rule}: {finding.text}")
    sys.exit(1 if found else 0)


@command.command("output", short_help="Check an answer.")
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
    click.echo(json.dumps(answer, ensure_ascii=False))
    sys.exit(0 if found is None else 1)
