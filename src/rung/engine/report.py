"""The report a blocked recovery leaves: what was tried, why it failed, and what a person may choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.outcome import report_text

if TYPE_CHECKING:
    from rung.core.ladder import Ladder
    from rung.core.outcome import Outcome


def write_report(path: str, outcome: Outcome[Any], ladder: Ladder) -> Path | None:
    """Add it to the file; earlier reports stay. An empty path: nobody wants one."""
    if not path:
        return None
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        file.write(report_text(outcome, ladder))
    return target
