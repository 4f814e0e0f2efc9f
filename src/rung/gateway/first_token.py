"""How long a stream may take for its first content while another model or upstream could answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import TimeoutSettings

MAX_ROUTES: Final = 1_000  # clients choose the names of models
_SLOWEST_FACTOR: Final = 3.0  # of the slowest first content that a route has shown
_BYTES_PER_SECOND: Final = 20_000.0  # of a request: a long prompt takes its time
# A request that asks for reasoning, and models that reason without being asked: their first content comes late.
_ASKS_FOR_REASONING: Final = (b'"reasoning', b'"thinking', b'"enable_thinking', b'"effort"')
_REASONING_MODEL: Final = re.compile(
    r"(?:^|[/.:-])(?:o[1-9]|gpt-[5-9]|r1|qwq|grok|magistral|gemini-(?:2\.5|[3-9]))|think|reason", re.IGNORECASE
)


class FirstTokenLimits:
    """Learned time limits of routes. A route that is found slow once gets more time from then on."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, str], float] = {}  # by upstream and model

    def seconds(self, route: tuple[str, str], inbound: InboundRequest, timeouts: TimeoutSettings) -> float:
        """Return the time limit of a request on a route; never more than `first_token`."""
        if may_reason(inbound, route[1]):
            return timeouts.first_token
        learned = max(timeouts.first_token_fallback, self._limits.get(route, 0.0))
        return min(learned + len(inbound.body) / _BYTES_PER_SECOND, timeouts.first_token)

    def note_content(self, route: tuple[str, str], seconds: float) -> None:
        """Note how long the first content of a route took."""
        self._raise(route, _SLOWEST_FACTOR * seconds)

    def note_timeout(self, route: tuple[str, str], seconds: float) -> None:
        """Note that a route had no content at its time limit: it may be slow by nature, so that it gets twice the time."""
        self._raise(route, 2.0 * seconds)

    def _raise(self, route: tuple[str, str], seconds: float) -> None:
        if seconds <= self._limits.get(route, 0.0):
            return
        if route not in self._limits and len(self._limits) >= MAX_ROUTES:
            del self._limits[next(iter(self._limits))]
        self._limits[route] = seconds


def may_reason(inbound: InboundRequest, model: str) -> bool:
    """Return whether a model may think for long before its first content."""
    if inbound.wire.name == "responses" or _REASONING_MODEL.search(model):
        return True
    return any(mark in inbound.body for mark in _ASKS_FOR_REASONING)
