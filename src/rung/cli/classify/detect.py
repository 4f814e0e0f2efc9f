"""`rung detect`: what an agent's recorded steps show that nobody raised."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import IO, Any

import click

from rung.cli.group import UsageError
from rung.cli.journal.option import journal_option, opened
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
    """Find loops: the same calls with the same outcomes, over and over.

    Each line of FILE (or of a pipe) is a trajectory, {"id", "steps": [{"i", "tool", "args", "result", "error"}]}.
    After every step it is asked, as if live, whether the agent goes in circles; the answer to a line is
    {"id", "loop", "at", "rule"}, with the step at which it was first noticed.
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
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    with lines:
        _answer(lines, file, watching, every=every)


def _watching(policy_file: str | None) -> LoopSettings:
    if policy_file is None:
        return LoopSettings()
    from rung.wiring.files import load_loop_settings

    return load_loop_settings(policy_file)


def _answer(lines: IO[bytes], source: str, watching: LoopSettings, *, every: bool) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            answer = _answered(line, f"{source}, line {number}", watching, every=every)
            sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
            sys.stdout.flush()  # whoever waits for this answer before sending the next gets it


def _answered(line: bytes, where: str, watching: LoopSettings, *, every: bool) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}); every line is one trajectory") from None
    steps = row.get("steps") if isinstance(row, dict) else None
    if not isinstance(steps, list):
        raise UsageError(f'{where}: a trajectory is an object with "id" and a list of "steps"')
    watch = SessionMonitor(watching)
    found: list[dict[str, Any]] = []
    for position, table in enumerate(steps):
        try:
            step = step_from(table)
        except ConfigError as error:
            raise UsageError(f"{where}, step {position}: {error}") from None
        finding = watch.check(step)
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
    """Find tasks in progress for too long, by the journal's own history of such tasks, or silent for too long.

    Exit code 1 when there are any.
    """
    from rung.detectors.stalls import StallThresholds
    from rung.wiring.stalls import stalls as found_in

    patience = StallThresholds(silence=silence, factor=factor)
    with opened(journal_at) as journal:
        found = found_in(journal, time.time(), patience, project)
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
    """Look at an answer: cut off, empty, malformed, partial, given up, or “done” with nothing to show.

    One JSON object: ok, and what was found. Exit code 1 when something was.
    """
    from rung.detectors.output import OutputSpec, look_at

    if file is None and sys.stdin.isatty():
        raise click.UsageError("Nothing to look at: give FILE, or pipe an answer in.")
    try:
        raw = sys.stdin.buffer.read() if file in (None, "-") else Path(str(file)).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    contract = OutputSpec(json=expect_json, sections=sections, evidence=evidence)
    found = look_at(raw.decode("utf-8", "replace"), contract, stop_reason=stop_reason)
    answer: dict[str, Any] = {"ok": found is None}
    if found is not None:
        answer |= {"rule": found.rule, "kind": found.kind.value, "text": found.text, "missing": list(found.missing)}
    click.echo(json.dumps(answer, ensure_ascii=False))
    sys.exit(0 if found is None else 1)
