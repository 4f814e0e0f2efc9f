"""What workflows of this process recorded, outside of their sandbox: a replay must record the same."""

from __future__ import annotations

from typing import Any

EVENTS: dict[str, list[dict[str, Any]]] = {}  # events of the last run of a workflow, by its id
