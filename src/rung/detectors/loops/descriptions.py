"""Description of a loop in one sentence: the call, the count and the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip

if TYPE_CHECKING:
    from rung.detectors.loops.observed_step import ObservedStep
    from rung.detectors.loops.rules import LoopMatch

_MAX_QUOTED_CHARS: Final = 300


def describe(match: LoopMatch, last: ObservedStep) -> str:
    """Describe a loop: the call, the count and the outcome."""
    what = {
        "repeated-block": f"{last.action} was called {match.count} times with the same outcome"
        if match.size == 1
        else f"the same {match.size} calls, ending with {last.action}, were made {match.count} times with the same outcomes",
        "stuck-call": f"{last.action} was called {match.count} times with the same outcome, "
        "with no call in between that could change it",
        "same-error": f"{last.action} failed {match.count} times with the same error, for changing arguments",
        "wasted-calls": f"{last.action} was called {match.count} times with nearly the same arguments and met the same "
        "class of trouble each time",
        "same-outcome": f"{last.tool} was called {match.count} times with a reworded request and the same outcome",
    }[match.rule]
    quoted = clip(" ".join(last.result_text.split()), _MAX_QUOTED_CHARS)
    return f"{what}: {quoted}" if quoted else what
