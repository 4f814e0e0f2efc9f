"""What `backtest` finds: one recorded recovery under another policy, and what many of them come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rung.core import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where two policies part: after which attempt, and what each does there, in words."""

    attempt: int
    recorded: str
    instead: str
    stops: bool  # it would have ended there
    goes_on: bool  # it would have gone on where the recorded one ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """One recorded recovery under another policy.

    `attempts`, `seconds` and `dollars` reach to the end where that is known, else to the point where the two
    part. `status` is None where nobody can know how it would have ended. `doubts` say why even a recorded
    result may not be this policy's: an attempt that took longer than it allows.
    """

    incident: str
    attempts: int
    seconds: float
    dollars: float
    status: ev.Status | None
    was_attempts: int
    was_seconds: float
    was_dollars: float
    was_status: ev.Status | None
    point: Point | None = None
    waits: tuple[tuple[float, float], ...] = ()  # recorded, instead: where chance does not explain it
    doubts: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Would it have decided the same all the way?"""
        return self.point is None

    @property
    def known(self) -> bool:
        """Is it certain how it would have ended?"""
        return (self.point is None or self.point.stops) and not self.doubts

    def words(self) -> str:
        """What would have been different, in a sentence."""
        parts = [f"would have waited {instead:.1f} s instead of {was:.1f} s" for was, instead in self.waits]
        if self.point is not None:
            parts.append(f"would have {self.point.instead} after attempt {self.point.attempt}: {self._end()}")
        return "; ".join((*parts, *self.doubts)) or "the same"

    def _end(self) -> str:
        if self.status is None:
            return "outcome unknown"
        fewer = self.was_attempts - self.attempts
        attempts = f"{fewer} attempt{'s' * (fewer != 1)} fewer" if fewer else "as many attempts"
        return f"{attempts}, {self.status} instead of {self.was_status or 'open'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Many recoveries under another policy. What is saved (or, below 0, added) counts the known ones only."""

    incidents: int
    same: int
    fewer: int  # attempts: it would have stopped earlier
    otherwise: int  # known, as many attempts, and another end
    more: int  # attempts: it would have gone on where the recorded one ended; these are among the unknown
    unknown: int
    attempts_saved: int
    seconds_saved: float
    dollars_saved: float
    good_lost: int  # recoveries it would have stopped before they came off


def summary(results: Iterable[Counterfactual]) -> Summary:
    """What many counterfactuals come to."""
    every = list(results)
    known = [one for one in every if one.known]
    return Summary(
        incidents=len(every),
        same=sum(one.same for one in known),
        fewer=sum(one.attempts < one.was_attempts for one in known),
        otherwise=sum(not one.same and one.attempts == one.was_attempts for one in known),
        more=sum(one.point is not None and one.point.goes_on for one in every),
        unknown=len(every) - len(known),
        attempts_saved=sum(one.was_attempts - one.attempts for one in known),
        seconds_saved=sum(one.was_seconds - one.seconds for one in known),
        dollars_saved=sum(one.was_dollars - one.dollars for one in known),
        good_lost=sum(one.was_status is ev.Status.RECOVERED and not one.same for one in known),
    )
