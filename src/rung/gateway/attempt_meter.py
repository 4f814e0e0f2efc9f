"""Meter of one upstream attempt: the usage that the upstream reported, or an estimate from what was sent and received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.spend_estimates import estimated_tokens

if TYPE_CHECKING:
    from rung.wires.registry import BodyFormat

_EVENT: Final = b"data:"


class AttemptMeter:
    """What one attempt has sent and received."""

    __slots__ = ("accepted", "events", "sent", "started_usage", "text_size", "usage")

    def __init__(self, sent: int = 0) -> None:
        self.sent = sent  # bytes of the request body
        self.accepted = False  # the upstream answered with 200
        self.usage: dict[str, Any] = {}  # reported at the end of the response
        self.started_usage: dict[str, Any] = {}  # reported at the beginning of a stream
        self.events = 0  # of a stream; at least one output token each
        self.text_size = 0  # bytes of the output

    def count_events(self, chunk: bytes) -> None:
        """Count the events in received bytes of a stream."""
        self.events += chunk.count(_EVENT)

    def tokens(
        self, bodies: BodyFormat, bound: tuple[int, int] | None, *, abandoned: bool, streamed: bool
    ) -> tuple[int, int]:
        """Return the input and output tokens to pay for.

        `bound`: the most that the request can use. `abandoned`: this side gave up while the upstream still worked. It may
        complete a response that is not streamed and charge all of it, so that the bound counts.
        """
        if self.usage:
            return bodies.token_counts(self.usage)
        if not self.accepted and not abandoned:
            return 0, 0  # rejected, or never received
        if abandoned and not streamed and bound is not None:
            return bound
        tokens_in, tokens_out = bodies.token_counts(self.started_usage)
        return tokens_in or estimated_tokens(self.sent), max(tokens_out, self.events, estimated_tokens(self.text_size))
