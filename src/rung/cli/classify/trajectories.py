"""Trajectories as JSON lines: read one per line, print one answer per line."""

from __future__ import annotations

import json
import sys
from typing import IO, TYPE_CHECKING, Any

import click

from rung.cli.output import json_text
from rung.cli.usage import UsageError
from rung.core.domain.errors import ConfigError
from rung.detectors.step import step_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rung.detectors.step import Step

    Answer = Callable[[dict[str, Any], str], dict[str, Any]]


def answer_lines(file: str | None, answer: Answer, *, jsonl: bool) -> None:
    """Print the answer to each trajectory of FILE, or of a pipe; an invalid line ends with an error that names it."""
    if not jsonl:
        raise click.UsageError("--jsonl is required: the only supported format is one trajectory per line.")
    if file is None or file == "-":
        if file is None and sys.stdin.isatty():
            raise click.UsageError("No input: give FILE, or pipe trajectories in.")
        _answer_stream(sys.stdin.buffer, "standard input", answer)
        return
    try:
        lines = open(file, "rb")  # noqa: SIM115, PTH123  # closed below; may be a pipe
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    with lines:
        _answer_stream(lines, file, answer)


def _answer_stream(lines: IO[bytes], source: str, answer: Answer) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{source}, line {number}"
            sys.stdout.write(json_text(answer(_row(line, where), where)) + "\n")
            sys.stdout.flush()  # the sender may wait for this answer before it sends the next line


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}); every line is one trajectory") from None
    if not isinstance(row, dict) or not isinstance(row.get("steps"), list):
        raise UsageError(f'{where}: a trajectory is an object with "id" and a list of "steps"')
    return row


def steps_of(row: dict[str, Any], where: str) -> Iterator[Step]:
    """Yield the steps of a trajectory; an invalid one is an error that names its position."""
    for position, table in enumerate(row["steps"]):
        try:
            yield step_from(table)
        except ConfigError as error:
            raise UsageError(f"{where}, step {position}: {error}") from None
