"""Loop rules: each counts how often the last step has occurred in the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.detectors.loops import normalize
from rung.detectors.loops import wasted_calls as wasted
from rung.detectors.loops.observed_step import opening_of, words_of
from rung.detectors.loops.side_effects import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.loop_settings import LoopSettings
    from rung.detectors.loops.observed_step import ObservedStep

BLOCK_SIZES: Final = range(1, 6)


@dataclass(frozen=True, slots=True)
class LoopMatch:
    """Result of a rule; `threshold_bonus` is the number of extra repeats that weaker evidence needs."""

    rule: str
    count: int
    threshold_bonus: int = 0
    size: int = 1

    @property
    def repeats(self) -> int:
        """The count that ladders use."""
        return self.count - self.threshold_bonus


def is_same(one: ObservedStep, other: ObservedStep) -> bool:
    """Return whether both steps have the same call and the same outcome."""
    return one.call == other.call and one.outcome == other.outcome


def is_nearly_same(one: ObservedStep, other: ObservedStep, similarity: float) -> bool:
    """Return whether both have the same call and a nearly equal outcome, such as a page that did not change."""
    if one.call != other.call or one.failed != other.failed:
        return False
    if one.outcome == other.outcome:
        return True
    if not one.expects_new_result or opening_of(one) != opening_of(other):
        return False
    return normalize.overlap(words_of(one), words_of(other)) >= similarity


def repeated_block(window: Sequence[ObservedStep], settings: LoopSettings) -> LoopMatch | None:
    """Match a block of one to five calls that repeats with the same outcomes."""
    best: LoopMatch | None = None
    for size in BLOCK_SIZES:
        matched, at = 0, len(window) - 1
        while at - size >= 0 and _matches(window[at], window[at - size], size, settings):
            matched += 1
            at -= 1
        count = 1 + matched // size
        if count >= settings.replan and (best is None or count > best.count):
            best = LoopMatch("repeated-block", count, _block_bonus(window[-size:], settings), size)
    return best


def _matches(one: ObservedStep, other: ObservedStep, size: int, settings: LoopSettings) -> bool:
    return is_nearly_same(one, other, settings.similarity) if size == 1 else is_same(one, other)


def _wait_bonus(one: ObservedStep, settings: LoopSettings) -> int:
    return settings.extra_repeats_when_waiting if one.waits or one.uninformative else 0


def _block_bonus(block: Sequence[ObservedStep], settings: LoopSettings) -> int:
    """Return the bonus for a block that waits, or whose outcomes do not show progress."""
    waits = any(one.waits or one.effect is Effect.WAIT for one in block)
    return settings.extra_repeats_when_waiting if waits or all(one.uninformative for one in block) else 0


def stuck_call(window: Sequence[ObservedStep], settings: LoopSettings) -> LoopMatch | None:
    """Match the same call and outcome, with no step in between that could change the outcome."""
    last = window[-1]
    count, changed = 1, False
    waited = between = False
    for at in range(len(window) - 2, -1, -1):
        one = window[at]
        if last.index - one.index > settings.stuck_window:
            break
        if is_same(one, last):
            if changed:
                break
            count += 1
            waited, between = waited or between, False
        else:
            between = between or one.effect is Effect.WAIT
            changed = changed or could_change(window, at, last)
    bonus = settings.extra_repeats_when_waiting if waited else _wait_bonus(last, settings)
    return LoopMatch("stuck-call", count, bonus) if count > 1 else None


def could_change(window: Sequence[ObservedStep], at: int, last: ObservedStep) -> bool:
    """Return whether the step at `at` could have changed the outcome of `last`; a failed or repeated step could not."""
    one = window[at]
    if one.failed or one.effect in _NON_MUTATING:
        return False
    if one.effect is not Effect.CHANGE and (
        last.failed or (last.location_independent and one.effect is not Effect.TALK)
    ):
        return False  # navigation neither fixes an error nor changes a lookup's result
    earlier_steps = window[max(0, at - _LOOKBACK) : at]
    if one.effect is Effect.MOVE and not one.generic_outcome:
        return not any(one.outcome == earlier.outcome for earlier in earlier_steps)  # a new location
    return not any(is_same(one, earlier) for earlier in earlier_steps)


_NON_MUTATING: Final = frozenset({Effect.READ, Effect.WAIT, Effect.NONE})
_LOOKBACK: Final = 24


def same_error(window: Sequence[ObservedStep], settings: LoopSettings) -> LoopMatch | None:
    """Match the same error from one tool with changing arguments; similar arguments need fewer repeats."""
    last = window[-1]
    if not last.failed or not last.fault:
        return None
    count = alike = 1
    user_involved = waited = between = False
    for at in range(len(window) - 2, -1, -1):
        one = window[at]
        if one.action != last.action:
            user_involved = user_involved or one.effect is Effect.TALK  # the user may have asked for other arguments
            between = between or one.effect is Effect.WAIT
            if one.effect is Effect.CHANGE and could_change(window, at, last):
                break
        elif not one.failed:
            break
        elif one.fault == last.fault:
            waited, between = waited or between, False
            count += not user_involved
            alike += is_same_request(one, last, settings) or (
                one.outcome == last.outcome and one.echoes_argument and last.echoes_argument
            )
    return _stronger_match(
        "same-error", count, alike, settings.extra_repeats_when_waiting if waited else _wait_bonus(last, settings)
    )


def same_outcome(window: Sequence[ObservedStep], settings: LoopSettings) -> LoopMatch | None:
    """Match the same outcome from one tool for a reworded request."""
    last = window[-1]
    if last.generic_outcome or last.waits or not (last.failed or last.effect in _ASKING):
        return None
    count = alike = 1
    calls = {last.call}
    for at in range(len(window) - 2, -1, -1):
        one = window[at]
        if one.tool == last.tool and one.outcome == last.outcome:
            count += 1
            alike += is_same_request(one, last, settings)
            calls.add(one.call)
        elif one.effect is Effect.CHANGE and could_change(window, at, last):
            break
    return _stronger_match("same-outcome", count, alike, 0) if len(calls) > 1 else None


_ASKING: Final = frozenset({Effect.READ, Effect.OTHER})  # a click elsewhere is not a reworded request


def is_same_request(one: ObservedStep, other: ObservedStep, settings: LoopSettings) -> bool:
    """Return whether both are the same call, or the same request in prose reworded."""
    if one.call == other.call:
        return True
    if one.failed and other.failed and one.target_file and one.target_file == other.target_file:
        return True  # repeated failures to change the same file
    if len(one.content) < _MIN_CONTENT_WORDS or len(other.content) < _MIN_CONTENT_WORDS or one.shape != other.shape:
        return False
    return normalize.overlap(one.content, other.content) >= settings.similarity


_MIN_CONTENT_WORDS: Final = 3


def _stronger_match(rule: str, count: int, alike: int, bonus: int) -> LoopMatch | None:
    match = LoopMatch(rule, alike, bonus) if alike >= count - 1 else LoopMatch(rule, count, bonus + 1)
    return match if match.count > 1 else None


def wasted_calls(window: Sequence[ObservedStep], settings: LoopSettings) -> LoopMatch | None:
    """Match nearly the same call with trouble of the same class, many times without progress."""
    found = wasted.wasted_calls(window, settings)
    return None if found is None else LoopMatch(wasted.RULE, *found)


LoopRule = Callable[["Sequence[ObservedStep]", "LoopSettings"], LoopMatch | None]
WEAK_RULES: Final[Mapping[str, LoopRule]] = {wasted.RULE: wasted_calls}  # for outcomes that are alike, but not equal
RULES: Final[Mapping[str, LoopRule]] = {
    "repeated-block": repeated_block,
    "stuck-call": stuck_call,
    "same-error": same_error,
    "same-outcome": same_outcome,
    **WEAK_RULES,
}
