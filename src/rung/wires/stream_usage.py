"""Token usage of a response that is made from one or more attempts, each of which is counted once."""

from __future__ import annotations

from typing import Any, Final

from rung.wires.wire_json import add_usage, int_or_zero

CHARACTERS_PER_TOKEN: Final = 4


class StreamUsage:
    """Usage of the current attempt and of the earlier ones, under the names of the wire."""

    input_tokens_key: str  # key of the input tokens in the usage object
    output_tokens_key: str

    def __init__(self) -> None:
        self.usage: dict[str, Any] = {}  # reported by the current attempt
        self.stop_reason = ""  # reported by the model
        self._characters = 0  # of output in the current attempt
        self._earlier_usage: dict[str, Any] = {}
        self._unreported_inputs = 0  # earlier attempts whose input tokens are not known

    @property
    def attempt_usage(self) -> dict[str, Any]:
        """Usage that the current attempt has reported at its end."""
        return self.usage if self.stop_reason else {}

    @property
    def output_characters(self) -> int:
        """Length of the current attempt's output so far."""
        return self._characters

    def started_usage(self) -> dict[str, Any]:
        """Return the usage that the current attempt has reported so far, at its beginning."""
        return self.usage

    def reported_usage(self) -> dict[str, Any]:
        """Return the usage of the current attempt; without its own count, its output is estimated."""
        if not self.usage or self.stop_reason:
            return self.usage
        return {**self.usage, self.output_tokens_key: self._characters // CHARACTERS_PER_TOKEN}

    def total_usage(self) -> dict[str, Any]:
        """Return the usage of all attempts. Where an attempt did not report its input, it is estimated."""
        inputs, outputs = self.input_tokens_key, self.output_tokens_key
        total = add_usage(self._earlier_usage, self.usage)
        if self._unreported_inputs:
            quoted = int_or_zero(self._earlier_usage.get(outputs))  # later requests quote the text so far
            estimate = max(0, int_or_zero(self.usage.get(inputs)) - quoted)
            total[inputs] = int_or_zero(total.get(inputs)) + estimate * self._unreported_inputs
        if "total_tokens" in total:
            total["total_tokens"] = int_or_zero(total.get(inputs)) + int_or_zero(total.get(outputs))
        return total

    def count_earlier_usage(self) -> None:
        """Add the usage of the attempt before: as reported, else by the length of its output."""
        if self._characters or self.usage:
            usage = self.reported_usage() or {self.output_tokens_key: self._characters // CHARACTERS_PER_TOKEN}
            self._unreported_inputs += self.input_tokens_key not in usage
            self._earlier_usage = add_usage(self._earlier_usage, usage)
        self.usage, self._characters = {}, 0
