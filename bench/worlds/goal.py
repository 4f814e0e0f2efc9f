"""The goal: the default ladder is on the frontier of success and attempts, with at most half of the waste of retrying for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.worlds.results import Result

WASTE_SHARE: Final = 0.5
_EPSILON: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Whether the goal holds in a world. `waste` is the share of retrying for ever; None: not recorded."""

    better: tuple[str, ...]  # policies of others with more success at the same or fewer attempts
    waste: float | None

    @property
    def holds(self) -> bool:
        """Whether both parts hold, as far as the world records them."""
        return not self.better and (self.waste is None or self.waste <= WASTE_SHARE + _EPSILON)

    def __str__(self) -> str:
        on = f"dominated by {', '.join(self.better)}" if self.better else "on the frontier"
        waste = "waste not recorded" if self.waste is None else f"waste {self.waste:.0%} of retrying for ever"
        return f"goal {'holds' if self.holds else 'MISSED'}: {on}; {waste}"


def goal(rows: Sequence[Result]) -> Goal:
    """Compare the default ladder with the policies of others.

    Attempts that the world did not record count as made and failed for ours, and as not made for the others.
    """
    ours = next(row for row in rows if row.is_default)
    others = [row for row in rows if row.owner != "rung" and row.is_played]
    success, attempts = ours.mean("success") or 0.0, (ours.mean("attempts") or 0.0) + ours.unknown
    better = tuple(
        row.policy
        for row in others
        if (row.mean("success") or 0.0) > success + _EPSILON and (row.mean("attempts") or 0.0) <= attempts + _EPSILON
    )
    own_waste = ours.mean("waste")
    endless = next((row.mean("waste") for row in others if row.owner == "retry for ever"), None)
    waste = None if own_waste is None or not endless else (own_waste + ours.dead_unknown) / endless
    return Goal(better=better, waste=waste)


def frontier(rows: Sequence[Result], cost: str) -> list[Result]:
    """Return the rows that no other row beats in success at the same or a lower cost, cheapest first."""
    played = [row for row in rows if row.mean(cost) is not None]
    kept: list[Result] = []
    for row in sorted(played, key=lambda row: (row.mean(cost) or 0.0, -(row.mean("success") or 0.0))):
        if not kept or (row.mean("success") or 0.0) > (kept[-1].mean("success") or 0.0) + _EPSILON:
            kept.append(row)
    return kept
