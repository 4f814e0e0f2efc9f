"""Reset of the state that all recoveries of a process share, so that tests do not depend on their order."""

from __future__ import annotations

from rung.engine.loop.process_state import BREAKERS, RETRY_BUDGET


def reset_process_state() -> None:
    """Fill the retry budget and forget all circuit breakers. A function that is guarded already keeps its breaker."""
    RETRY_BUDGET.credit(RETRY_BUDGET.capacity)
    BREAKERS.clear()
