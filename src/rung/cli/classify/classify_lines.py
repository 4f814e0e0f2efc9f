"""`rung classify --jsonl`: one error a line in, one name a line out, as they come."""

from __future__ import annotations

import json
import sys
from typing import IO, Any, Final

from rung.cli.group import UsageError
from rung.core.classify.classifier import classify

# What an error's line may say about itself; a label that stands beside them is never looked at.
FIELDS: Final = ("form", "provider", "status", "headers", "body", "exception_type", "message", "exit_code")


def name_lines(path: str | None) -> None:
    """Name each error of a file or a pipe; a line that is none ends it with its number, after those before it."""
    if path is None or path == "-":
        _name(sys.stdin.buffer, "standard input")
        return
    try:
        lines = open(path, "rb")  # noqa: SIM115, PTH123  # closed below; a pipe's name is no pathlib matter
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    with lines:
        _name(lines, path)


def _name(lines: IO[bytes], source: str) -> None:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            sys.stdout.write(json.dumps(_named(_row(line, f"{source}, line {number}")), ensure_ascii=False) + "\n")
            sys.stdout.flush()  # whoever waits for this answer before asking the next gets it


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}); every line is one JSON object") from None
    if not isinstance(row, dict):
        raise UsageError(
            f"{where}: {type(row).__name__} where a JSON object is wanted, with any of {', '.join(FIELDS)}"
        )
    return row


def _named(row: dict[str, Any]) -> dict[str, Any]:
    failure = classify({name: row.get(name) for name in FIELDS})
    return {
        "id": row.get("id"),
        "kind": failure.kind.value,
        "retryable": failure.retryable,
        "retry_after_s": failure.retry_after,
        "rule": failure.rule,
    }
