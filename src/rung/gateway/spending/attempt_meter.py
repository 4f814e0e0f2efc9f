"""Meter of one upstream attempt: the usage that the upstream reported, or an estimate from what was sent and received."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage import Usage
from rung.core.policy.spend_estimates import estimated_tokens, unseen_tokens

if TYPE_CHECKING:
    from rung.wires.registry import WireFormat

_EVENT: Final = b"data:"


class AttemptMeter:
    """Bytes and tokens that one attempt has sent and received."""

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

    def estimated(self, wire: WireFormat, bound: tuple[int, int] | None, *, abandoned: bool, streamed: bool) -> Usage:
        """Return the tokens to pay for where the upstream has reported no usage at the end.

        `bound`: the most that the request can use. `abandoned`: this side gave up while the upstream still worked. A
        response that is not streamed is charged as a whole although it did not arrive, so that the bound counts.
        """
        if not self.accepted and not abandoned:
            return Usage()  # rejected, or never received
        if not streamed and not self.text_size and bound is not None:
            return Usage(input=bound[0], output=bound[1])
        usage = wire.read_usage(self.started_usage)
        if not usage.prompt:
            sent = estimated_tokens(self.sent)
            usage = Usage(input=sent if bound is None else min(sent, bound[0]), output=usage.output)
        tokens_out = max(usage.output, self.events, estimated_tokens(self.text_size))
        if abandoned:
            tokens_out += unseen_tokens(monotonic() - self.content_at)
        return replace(usage, output=tokens_out if bound is None else min(tokens_out, bound[1]))
