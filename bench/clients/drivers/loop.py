"""Reads cells from stdin, one JSON object per line, and writes how each ended; runs in the environment of a client."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = {"messages": "claude-sonnet-4-5", "chat": "gpt-5.1", "responses": "gpt-5.1"}
KEY = "sk-test-0123456789"
PROMPT = "Append the row one-row once with your tool, then recite the words."


class Cell:
    """What a driver is told."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.wire: str = told["wire"]
        self.is_stream: bool = told["mode"] == "stream"
        self.url: str = told["url"]
        self.v1: str = told["url"] + "/v1"
        self.has_tries: bool = told["tries"] == "default"
        self.rows = Path(told["rows"])
        self.model = MODEL[self.wire]

    @property
    def retries(self) -> dict[str, int]:
        """Return the keyword that turns an SDK's own retries off, or nothing."""
        return {} if self.has_tries else {"max_retries": 0}

    def append_row(self, row: str) -> str:
        """Append a row to the file."""
        with self.rows.open("a", encoding="utf-8") as file:
            file.write(row + "\n")
        return "appended"


def serve(run: Callable[[Cell], str]) -> None:
    """Run cells until stdin ends."""
    for line in sys.stdin:
        try:
            found = {"text": run(Cell(json.loads(line)))}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        sys.stdout.write("\n@@" + json.dumps(found) + "\n")
        sys.stdout.flush()
