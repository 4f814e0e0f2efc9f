"""Stored bodies of events, which a damaged or foreign file may hold in any form."""

from __future__ import annotations

import json
from typing import Any, Final

from rung.core.domain.errors import StoreDamaged

UNREADABLE_BODY: Final = '{"name":"unreadable"}'  # shown in place of an event that cannot be read


def event_table(body: str) -> dict[str, Any]:
    """Return the JSON object of an event; raise StoreDamaged."""
    try:
        table = json.loads(body)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise StoreDamaged("an event is not a JSON object; `rung journal check` counts such events")
    return table


def shown_event(body: str) -> dict[str, Any]:
    """Return the JSON object of an event for display; a placeholder if it cannot be read."""
    try:
        return event_table(body)
    except StoreDamaged:
        return event_table(UNREADABLE_BODY)
