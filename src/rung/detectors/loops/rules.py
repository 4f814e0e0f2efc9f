"""The rules of a loop: how often the last step has now happened, and by which rule. Each looks at the window alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.detectors.loops import normalize
from rung.detectors.loops.observed_step import opening_of, words_of
from rung.detectors.loops.side_effects import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.loop_settings import LoopSettings
    from rung.detectors.loops.observed_step import ObservedStep

BLOCKS: Final = range(1, 6)


@dataclass(frozen=True, slots=True)
class LoopMatch:
    """What a rule counted; `slack` is what a weaker sign needs more."""

    rule: str
    count: int
    threshold_bonus: int = 0
    size: int = 1

    @property
    def repeats(self) -> int:
        """The count as the ladders know it."""
        return self.count - self.threshold_bonus


def same(one: ObservedStep, other: ObservedStep) -> bool:
    """The same call with the same outcome."""
    return one.call == other.call and one.outcome == other.outcome


def nearly(one: ObservedStep, other: ObservedStep, likeness: float) -> bool:
    """The same call, and an outcome that begins the same and says much the same: the page that did not change."""
    if one.call != other.call or one.failed != other.failed:
        return False
    if one.outcome == other.outcome:
        return True
    if not one.settled or opening_of(one) != opening_of(other):
        return False
    return normalize.alike(words_of(one), words_of(other)) >= likeness


def repeated_block(window: Sequence[ObservedStep], watching: LoopSettings) -> LoopMatch | None:
    """The last k calls and outcomes, over and over."""
    best: LoopMatch | None = None
    for size in BLOCKS:
        matched, at = 0, len(window) - 1
        while at - size >= 0 and _matches(window[at], window[at - size], size, watching):
            matched += 1
            at -= 1
        count = 1 + matched // size
        if count >= watching.replan and (best is None or count > best.count):
            best = LoopMatch("repeated-block", count, _unseen(window[-size:], watching), size)
    return best


def _matches(one: ObservedStep, other: ObservedStep, size: int, watching: LoopSettings) -> bool:
    return nearly(one, other, watching.similarity) if size == 1 else same(one, other)


def _patience(one: ObservedStep, watching: LoopSettings) -> int:
    return watching.extra_repeats_when_waiting if one.waits or one.mute else 0


def _unseen(block: Sequence[ObservedStep], watching: LoopSettings) -> int:
    """More is needed where nothing in a block shows whether it gets on, or it looks again after a pause."""
    waits = any(one.waits or one.effect is Effect.WAIT for one in block)
    return watching.extra_repeats_when_waiting if waits or all(one.mute for one in block) else 0


def stuck_call(window: Sequence[ObservedStep], watching: LoopSettings) -> LoopMatch | None:
    """The same call with the same outcome, whatever stood between, as long as none of it could change the outcome."""
    last = window[-1]
    count, changed = 1, False
    waited = between = False
    for at in range(len(window) - 2, -1, -1):
        one = window[at]
        if last.index - one.index > watching.stuck_window:
            break
        if same(one, last):
            if changed:
                break
            count += 1
            waited, between = waited or between, False
        else:
            between = between or one.effect is Effect.WAIT
            changed = changed or could_change(window, at, last)
    slack = watching.extra_repeats_when_waiting if waited else _patience(last, watching)
    return LoopMatch("stuck-call", count, slack) if count > 1 else None


def could_change(window: Sequence[ObservedStep], at: int, last: ObservedStep) -> bool:
    """Could the step at this place have changed what the last one came to? One that failed, or was made before, could not."""
    one = window[at]
    if one.failed or one.effect in _INERT:
        return False
    if one.effect is not Effect.CHANGE and (last.failed or (last.anywhere and one.effect is not Effect.TALK)):
        return False  # what moves about does not mend an error, nor change what is looked up
    before = window[max(0, at - _BEFORE) : at]
    if one.effect is Effect.MOVE and not one.many:
        return not any(one.outcome == earlier.outcome for earlier in before)  # a place it has not been to
    return not any(same(one, earlier) for earlier in before)


_INERT: Final = frozenset({Effect.READ, Effect.WAIT, Effect.NONE})
_BEFORE: Final = 24


def same_error(window: Sequence[ObservedStep], watching: LoopSettings) -> LoopMatch | None:
    """The same error from one tool, whatever it was given; counted sooner where it was given much the same."""
    last = window[-1]
    if not last.failed or not last.fault:
        return None
    count = alike = 1
    told = waited = between = False
    for at in range(len(window) - 2, -1, -1):
        one = window[at]
        if one.action != last.action:
            told = told or one.effect is Effect.TALK  # other arguments may then be what was asked for
            between = between or one.effect is Effect.WAIT
            if one.effect is Effect.CHANGE and could_change(window, at, last):
                break
        elif not one.failed:
            break
        elif one.fault == last.fault:
            waited, between = waited or between, False
            count += not told
            alike += asks_the_same(one, last, watching) or (one.outcome == last.outcome and one.named and last.named)
    return _stronger(
        "same-error", count, alike, watching.extra_repeats_when_waiting if waited else _patience(last, watching)
    )


def same_outcome(window: Sequence[ObservedStep], watching: LoopSettings) -> LoopMatch | None:
    """The same outcome from one tool, asked in other words."""
    last = window[-1]
    if last.many or last.waits or not (last.failed or last.effect in _ASKS):
        return None
    count = alike = 1
    calls = {last.call}
    for at in range(len(window) - 2, -1, -1):
        one = window[at]
        if one.tool == last.tool and one.outcome == last.outcome:
            count += 1
            alike += asks_the_same(one, last, watching)
            calls.add(one.call)
        elif one.effect is Effect.CHANGE and could_change(window, at, last):
            break
    return _stronger("same-outcome", count, alike, 0) if len(calls) > 1 else None


_ASKS: Final = frozenset({Effect.READ, Effect.OTHER})  # clicking elsewhere is not the same in other words


def asks_the_same(one: ObservedStep, other: ObservedStep, watching: LoopSettings) -> bool:
    """The same call, or one in prose that asks for the same in other words."""
    if one.call == other.call:
        return True
    if one.failed and other.failed and one.place and one.place == other.place:
        return True  # one place that cannot be changed, whatever is tried
    if len(one.content) < _ENOUGH or len(other.content) < _ENOUGH or one.shape != other.shape:
        return False
    return normalize.alike(one.content, other.content) >= watching.similarity


_ENOUGH: Final = 3  # words


def _stronger(rule: str, count: int, alike: int, slack: int) -> LoopMatch | None:
    hit = LoopMatch(rule, alike, slack) if alike >= count - 1 else LoopMatch(rule, count, slack + 1)
    return hit if hit.count > 1 else None


RULES: Final = {
    "repeated-block": repeated_block,
    "stuck-call": stuck_call,
    "same-error": same_error,
    "same-outcome": same_outcome,
}
