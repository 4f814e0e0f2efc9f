"""`rung classify --jsonl`: classifies one JSON error per line, as a stream."""

from __future__ import annotations

import json
import sys
from typing import IO, Any, Final

from rung.cli.output import json_text
from rung.cli.usage import UsageError
from rung.core.classify.classifier import classify
from rung.core.classify.error_types import failure_type

# Fields of a line that are used; others, such as a label, are ignored.
FIELDS: Final = ("form", "provider", "status", "headers", "body", "exception_type", "message", "exit_code")


def classify_lines(path: str | None) -> None:
    """Classify each error of a file or a pipe; an invalid line stops it with an error that names the line."""
    if path is None or path == "-":
        _classify_stream(sys.stdin.buffer, "standard input")
        return
    try:
        lines = open(path, "rb")  # noqa: SIM115, PTH123  # closed below; may be a pipe
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    with lines:
        _classify_stream(lines, path)


def _classify_stream(lines: IO[bytes], source: str) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            sys.stdout.write(json_text(_classify_row(_parse_line(line, f"{source}, line {number}"))) + "\n")
            sys.stdout.flush()  # the sender may wait for this answer before it sends the next line


def _parse_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}); every line is one JSON object") from None
    if not isinstance(row, dict):
        raise UsageError(f"{where}: {type(row).__name__} is not a JSON object with any of {', '.join(FIELDS)}")
    return row


def _classify_row(row: dict[str, Any]) -> dict[str, Any]:
    failure = classify({name: row.get(name) for name in FIELDS})
    return {
        "id": row.get("id"),
        "kind": failure.kind.value,
        "error_type": failure_type(failure).value,
        "retryable": failure.retryable,
        "retry_after_s": failure.retry_after,
        "rule": failure.rule,
    }
