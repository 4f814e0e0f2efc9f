"""Meter of one upstream attempt: the usage that the upstream reported, or an estimate from what was sent and received."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.spend_estimates import estimated_tokens, unseen_tokens

if TYPE_CHECKING:
    from rung.wires.registry import BodyFormat

_EVENT: Final = b"data:"


class AttemptMeter:
    """What one attempt has sent and received."""

    __slots__ = ("accepted", "content_at", "events", "sent", "started_usage", "text_size", "usage")

    def __init__(self, sent: int = 0) -> None:
        self.sent = sent  # bytes of the request body
        self.accepted = False  # the upstream answered with 200
        self.usage: dict[str, Any] = {}  # reported at the end of the response
        self.started_usage: dict[str, Any] = {}  # reported at the beginning of a stream
        self.events = 0  # of a stream; about one output token each
        self.text_size = 0  # bytes of the output
        self.content_at = monotonic()  # when content came last, or the attempt began

    def count_events(self, chunk: bytes) -> None:
        """Count the events in received bytes of a stream."""
        self.events += chunk.count(_EVENT)

    def estimated(
        self, bodies: BodyFormat, bound: tuple[int, int] | None, *, abandoned: bool, streamed: bool
    ) -> tuple[int, int]:
        """Return the input and output tokens to pay for where the upstream has reported no usage.

        `bound`: the most that the request can use. `abandoned`: this side gave up while the upstream still worked. A
        response that is not streamed is charged as a whole although it did not arrive, so that the bound counts.
        """
        if not self.accepted and not abandoned:
            return 0, 0  # rejected, or never received
        if not streamed and not self.text_size and bound is not None:
            return bound
        tokens_in, tokens_out = bodies.token_counts(self.started_usage)
        tokens_in = tokens_in or estimated_tokens(self.sent)
        tokens_out = max(tokens_out, self.events, estimated_tokens(self.text_size))
        if abandoned:
            tokens_out += unseen_tokens(monotonic() - self.content_at)
        return (tokens_in, tokens_out) if bound is None else (min(tokens_in, bound[0]), min(tokens_out, bound[1]))
