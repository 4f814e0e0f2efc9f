"""OpenTelemetry spans: one per call, by the GenAI semantic conventions, with failures and decisions as span events.

Uses the tracer provider of the process (for example `opentelemetry-instrument rung gateway`). Spans contain no
prompts, no responses and no keys.
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
    """Records finished calls as spans."""

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
        except ModuleNotFoundError:
            raise ConfigError("gateway.otel", True, "false, or pip install 'rung[otel]'") from None
        self._tracer = trace.get_tracer("rung.gateway")

    def record_span(
        self,
        inbound: InboundRequest,
        started_at: float,
        ended_at: float,
        *,
        model: str,
        attempts: int,
        outcome: str,
        tokens: tuple[int, int] = (0, 0),
        events: Sequence[Event] = (),
    ) -> None:
        """Record the span of one finished call."""
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": inbound.wire.upstream,
            "gen_ai.request.model": inbound.model,
            "gen_ai.response.model": model,
            "gen_ai.usage.input_tokens": tokens[0],
            "gen_ai.usage.output_tokens": tokens[1],
            "rung.project": inbound.project,
            "rung.session": inbound.session,
            "rung.attempts": attempts,
            "rung.outcome": outcome,
        }
        failures = [event.failure.kind for event in events if isinstance(event, AttemptFailed)]
        if outcome not in ("succeeded", "recovered") and failures:
            attributes["error.type"] = str(failures[-1])
        span = self._tracer.start_span(
            f"chat {inbound.model}", attributes=attributes, start_time=_nanoseconds(started_at)
        )
        for event in events:
            if isinstance(event, AttemptFailed):
                event_attributes = {"rung.kind": str(event.failure.kind), "rung.rule": event.failure.rule}
                span.add_event("rung.attempt_failed", event_attributes, timestamp=_nanoseconds(event.at))
            elif isinstance(event, Decided):
                decision = event.decision
                event_attributes = {
                    "rung.decision": type(decision).__name__.lower(),
                    "rung.reason": str(decision.reason)[:200],
                }
                span.add_event("rung.decided", event_attributes, timestamp=_nanoseconds(event.at))
        span.end(_nanoseconds(ended_at))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * _NANOSECONDS)
