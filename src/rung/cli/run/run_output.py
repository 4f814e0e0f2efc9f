"""Standard output of `rung run`: the output of a successful run, or the contract as the only JSON document."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.command_output import OutputClosed, OutputText, ShownOutput
from rung.cli.output import json_text
from rung.core.classify.evidence import clip

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.outcome import Outcome

STDOUT: Final = 1
MAX_OUTPUT_CHARACTERS: Final = 65_536  # of an unsuccessful run, in its contract


class RunOutput:
    """Shows the output of a run as it arrives, and its result at the end."""

    def __init__(self, *, as_json: bool, stream: bool | None) -> None:
        self._as_json = as_json
        self._streams = not as_json and (stream if stream is not None else sys.stdout.isatty())
        self._shown = ShownOutput(_write_output)
        self._last = ""
        self.more: dict[str, str] = {}  # further fields of the contract
        self.show_output: Callable[[], Callable[[bytes], object]] | None = (
            self._shown.next_attempt if self._streams else None
        )

    def show_errors(self, chunk: bytes) -> None:
        """Show what the command writes to standard error."""
        sys.stderr.buffer.write(chunk)
        sys.stderr.flush()

    def keep(self, text: str) -> None:
        """Keep the output of an attempt for the contract."""
        self._last = text or self._last

    def print_outcome(self, outcome: Outcome[str]) -> None:
        """Print the result. Raises OutputClosed if nobody reads standard output any more."""
        try:
            if self._as_json:
                contract = {"name": "outcome", **self._contract(outcome), "output": self._output_of(outcome)}
                sys.stdout.write(json_text(contract) + "\n")
            elif not outcome.ok:
                self._print_contract(outcome)
            elif not self._streams:
                _print_value(outcome.value)
            sys.stdout.flush()
        except BrokenPipeError:
            discard_output()
            if not outcome.ok:
                sys.stderr.write(json_text(self._contract(outcome)) + "\n")
            raise OutputClosed from None

    def _print_contract(self, outcome: Outcome[str]) -> None:
        """Print the contract as one document; after streamed output, as one line of its own."""
        if not self._streams:
            contract = {**self._contract(outcome), "output": self._output_of(outcome)}
            sys.stdout.write(json_text(contract, indent=2) + "\n")
            return
        separator = "" if self._shown.is_at_line_start else "\n"
        indent = 2 if sys.stdout.isatty() else None
        sys.stdout.write(separator + json_text(self._contract(outcome), indent) + "\n")

    def _contract(self, outcome: Outcome[str]) -> dict[str, Any]:
        """Return the contract with the further fields; its level records give the same recommendation."""
        contract = {**outcome.to_dict(), **self.more}
        for level in contract["levels"]:
            if level.get("recommendation"):
                level["recommendation"] = contract["recommendation"]
        return contract

    def _output_of(self, outcome: Outcome[str]) -> str | None:
        """Return the output of a run: of a failed one, that of its last turn, else what the last attempt with any wrote."""
        if outcome.value is not None:
            return str(outcome.value)
        return clip(self._last, MAX_OUTPUT_CHARACTERS) or None


def discard_output() -> None:
    """Let everything that is still written to standard output vanish: its reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)


def _write_output(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.flush()


def _print_value(value: Any) -> None:
    sys.stdout.flush()
    if isinstance(value, OutputText):
        value.copy_to(sys.stdout.buffer)
    elif value is not None:
        sys.stdout.buffer.write(value.encode())  # bytes: the command's own output is not changed
