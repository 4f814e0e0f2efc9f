"""Reads cells from stdin, one JSON object per line, and writes how each ended; runs in the environment of a client."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = {"messages": "claude-sonnet-4-5", "chat": "gpt-5.1", "responses": "gpt-5.1"}
KEY = "sk-test-0123456789"
PROMPT = "Append the row one-row once with your tool, then recite the words."
PARAMETERS = {"type": "object", "properties": {"row": {"type": "string"}}, "required": ["row"]}
FUNCTION = {"name": "append_row", "description": "Append a row.", "parameters": PARAMETERS}
MAX_TURNS = 6
MAX_PARALLEL = int(os.environ.get("MAX_PARALLEL", "12"))


class Cell:
    """What a driver is told."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.wire: str = told["wire"]
        self.is_stream: bool = told["mode"] == "stream"
        self.url: str = told["url"]
        self.v1: str = told["url"] + "/v1"
        self.tries: str = told["tries"]  # default, zero, or a number
        self.has_tries = self.tries == "default"
        self.rows = Path(told["rows"])
        self.model: str = told.get("model") or MODEL[self.wire]

    @property
    def retries(self) -> dict[str, int]:
        """Return the keyword that limits an SDK's own retries, or nothing."""
        return {} if self.has_tries else {"max_retries": int(self.tries.replace("zero", "0"))}

    def append_row(self, row: str) -> str:
        """Append a row to the file."""
        with self.rows.open("a", encoding="utf-8") as file:
            file.write(row + "\n")
        return "appended"

    def ask(self, api: Any, told: dict[str, Any], final: str) -> Any:
        """Ask an SDK's API, streamed or not; `final` is the stream's method for the whole answer."""
        if not self.is_stream:
            return api.create(**told)
        with api.stream(**told) as stream:
            return getattr(stream, final)()


def take_turns(turn: Callable[[], str | None]) -> str:
    """Take turns until one returns the answer."""
    for _ in range(MAX_TURNS):
        if (text := turn()) is not None:
            return text
    raise RuntimeError("too many turns")


def serve(run: Callable[[Cell], str]) -> None:
    """Tell that the driver is ready, then run cells until stdin ends; those that are parallel in threads."""
    tell({})
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        for line in sys.stdin:
            told = json.loads(line)
            if told.get("parallel"):
                pool.submit(answer, run, told)
            else:
                answer(run, told)


def answer(run: Callable[[Cell], str], told: dict[str, Any]) -> None:
    """Run a cell and tell how it ended."""
    try:
        found = {"text": run(Cell(told))}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    tell({**found, "number": told["number"]})


def tell(found: dict[str, Any]) -> None:
    """Write a line for the harness; a client's own output has other lines."""
    sys.stdout.write("\n@@" + json.dumps(found) + "\n")
    sys.stdout.flush()
