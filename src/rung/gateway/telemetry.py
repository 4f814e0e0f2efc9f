"""Spans for OpenTelemetry: one per call, by its conventions for generative AI, with what Rung did as events of it.

Uses whatever tracer provider the process has (for one, `opentelemetry-instrument rung gateway`); no prompt, no
answer and no key is in a span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.events import AttemptFailed, Decided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.gateway.inbound_request import InboundRequest

_NANOSECONDS: Final = 1_000_000_000


class Telemetry:
    """Tells a tracer what happened, once it has."""

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
        except ModuleNotFoundError:
            raise ConfigError("gateway.otel", True, "false, or pip install 'rung[otel]'") from None
        self._tracer = trace.get_tracer("rung.gateway")

    def told(
        self,
        call: InboundRequest,
        began: float,
        ended: float,
        *,
        model: str,
        attempts: int,
        outcome: str,
        tokens: tuple[int, int] = (0, 0),
        events: Sequence[Event] = (),
    ) -> None:
        """One call, from its beginning to its end."""
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": call.wire.upstream,
            "gen_ai.request.model": call.model,
            "gen_ai.response.model": model,
            "gen_ai.usage.input_tokens": tokens[0],
            "gen_ai.usage.output_tokens": tokens[1],
            "rung.project": call.project,
            "rung.session": call.session,
            "rung.attempts": attempts,
            "rung.outcome": outcome,
        }
        failures = [event.failure.kind for event in events if isinstance(event, AttemptFailed)]
        if outcome not in ("succeeded", "recovered") and failures:
            attributes["error.type"] = str(failures[-1])
        span = self._tracer.start_span(f"chat {call.model}", attributes=attributes, start_time=_at(began))
        for event in events:
            if isinstance(event, AttemptFailed):
                told = {"rung.kind": str(event.failure.kind), "rung.rule": event.failure.rule}
                span.add_event("rung.attempt_failed", told, timestamp=_at(event.at))
            elif isinstance(event, Decided):
                decision = event.decision
                told = {"rung.decision": type(decision).__name__.lower(), "rung.reason": str(decision.reason)[:200]}
                span.add_event("rung.decided", told, timestamp=_at(event.at))
        span.end(_at(ended))


def _at(seconds: float) -> int:
    return int(seconds * _NANOSECONDS)
