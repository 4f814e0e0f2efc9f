"""Rungs that a recovery did not take, and why: for the reason of its end, its notes and its contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.events import Decided, Opened, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.core.domain.events import Event, Skip

EXHAUSTED: Final = "exhausted"
# Reasons that follow from the ladder itself: the path of the recovery shows them already.
_ORDINARY: Final = (
    EXHAUSTED,
    "all ",
    "does not apply to ",
    "the failure is not retryable",
    "the policy does not retry this kind",
    "the call cannot be changed",
)


class SkippedRung(NamedTuple):
    """A rung that was not taken, by index, and the last reason why."""

    rung: int
    reason: str


def skipped_rungs(events: Iterable[Event]) -> tuple[SkippedRung, ...]:
    """Return the rungs that were not taken, each with the last reason that says more than that it is exhausted."""
    found: dict[int, str] = {}
    for event in events:
        if isinstance(event, Skipped):
            found[event.rung] = event.reason
        elif isinstance(event, Decided):
            found |= {rung: reason for rung, reason in event.decision.skipped if reason != EXHAUSTED}
    return tuple(SkippedRung(rung, reason) for rung, reason in sorted(found.items()))


def is_notable(reason: str) -> bool:
    """Whether a reason tells a person something that the ladder and the path do not."""
    return not reason.startswith(_ORDINARY)


def describe_skips(skipped: Iterable[Skip], names: Sequence[str]) -> str:
    """Return the notable skips in one line, by the names of the rungs; empty if there are none."""
    by_reason: dict[str, list[str]] = {}
    for rung, reason in skipped:
        if is_notable(reason):
            by_reason.setdefault(reason, []).append(rung_name(rung, names))
    return "; ".join(f"{', '.join(rungs)} skipped: {reason}" for reason, rungs in by_reason.items())


def rung_names(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the names of the ladder's rungs, as the first event has them."""
    return events[0].terms.rungs if events and isinstance(events[0], Opened) else ()


def rung_name(rung: int, names: Sequence[str]) -> str:
    """Return the name of a rung, or its index if the ladder is unknown."""
    return names[rung] if 0 <= rung < len(names) else f"rung {rung}"
