"""Counts for whoever watches: plain numbers, written as Prometheus reads them."""

from __future__ import annotations

from collections import Counter
from typing import Final

_TYPES: Final = {
    "rung_requests_total": "Requests by wire and how they ended.",
    "rung_attempts_total": "Attempts at upstreams.",
    "rung_failures_total": "Failed attempts by kind.",
    "rung_rungs_total": "Rungs that were climbed to.",
    "rung_tokens_total": "Tokens in and out, as the upstreams count them.",
    "rung_dollars_total": "US dollars, by the price list.",
    "rung_joined_total": "Requests that joined one that was running.",
    "rung_unwritten_total": "Good calls beyond journaled_per_second: counted here, not in the journal.",
    "rung_cancelled_total": "Requests whose client left.",
}


class Metrics:
    """One counter by name and labels."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, labels: str = "", much: float = 1) -> None:
        """Count; labels are written as they will be read."""
        self.counts[name, labels] += much  # type: ignore[assignment]  # dollars are counted in parts

    def text(self, **gauges: float) -> str:
        """All of them, as Prometheus reads them."""
        lines = []
        for name, about in _TYPES.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} counter"]
            found = sorted((labels, value) for (known, labels), value in self.counts.items() if known == name)
            lines += [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in found]
        for name, value in gauges.items():
            lines += [f"# TYPE rung_{name} gauge", f"rung_{name} {value}"]
        return "\n".join(lines) + "\n"
