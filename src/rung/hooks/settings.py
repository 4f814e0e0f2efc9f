"""The `[loops]` and `[stop]` tables of a project's file, as hooks use them."""

from __future__ import annotations

from typing import Any

from rung.core.stop_gate import stop_from
from rung.detectors.watching import watching_from
from rung.wiring.files import read_table


def read(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both tables, checked."""
    table = read_table(path)
    loops = table.get("loops", {})
    watching_from(loops)
    return loops, stop_from(table.get("stop", {}))
