"""Judging finished work: what a judge is shown, how it is asked, and what its answer is worth.

A judge is anything that takes a case and gives a verdict: a function, a command, a model behind any adapter.
It is shown the task, what was done and what came of it, and never what the worker thought: a worker that talked
itself into believing would take the judge along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.errors import ConfigError
from rung.core.domain.verdict import DIMENSIONS, MAX_SCORE, Verdict, parse_verdict
from rung.core.text.json_in_text import find_json_object
from rung.detectors.claims import ClaimCheck, unverified
from rung.detectors.loops import normalize
from rung.detectors.loops.prefilter import COSMETIC
from rung.detectors.loops.side_effects import Effect, effect_of

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from rung.detectors.step import Step

ANSWER: Final = 12_000  # characters of each part that a judge is shown
CALLS: Final = 40  # the last of them
_ARGS: Final = 300
_RESULT: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCase:
    """What a judge is shown."""

    task: str
    answer: str
    calls: tuple[str, ...] = ()
    checks: tuple[ClaimCheck, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The case for a judge that is another program."""
        checks = [{"claim": check.claim, "holds": check.holds, "seen": check.seen} for check in self.checks]
        return {"task": self.task, "answer": self.answer, "calls": list(self.calls), "checks": checks}


Judge: TypeAlias = Callable[[JudgeCase], Verdict]

_THOUGHTS: Final = re.compile(
    r"<(think|thinking|thought|reasoning|scratchpad|reflection)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)


def without_thoughts(text: str) -> str:
    """A text without the parts that are marked as thinking, closed or cut off."""
    return _THOUGHTS.sub("", text).strip()


def case_of(task: str, answer: str, steps: Sequence[Step] = (), checks: Sequence[ClaimCheck] = ()) -> JudgeCase:
    """The case for a judge: thoughts left out, secrets cut, everything bounded."""
    made = [_shown(step) for step in steps if step.tool and effect_of(step.tool, None) is not Effect.NONE]
    return JudgeCase(
        task=redacted(clip(task, ANSWER)),
        answer=redacted(clip(without_thoughts(clip(answer, 4 * ANSWER)), ANSWER)),
        calls=tuple(made[-CALLS:]),
        checks=tuple(checks),
    )


def _shown(step: Step) -> str:
    args = step.args
    if isinstance(args, Mapping):  # what a worker gives as its reason is its reasoning
        args = {name: value for name, value in args.items() if str(name).lower() not in COSMETIC} or args
    given = clip(normalize.clipped(args), _ARGS)
    came = clip(without_thoughts(normalize.clipped(step.result)), _RESULT)
    return redacted(f"{step.tool}({given}) {'failed' if step.error else 'gave'}: {came}")


def assess(case: JudgeCase, judge: Judge | None = None) -> Verdict | Evidence | None:
    """What finished work amounts to: what a claim that does not hold shows, else the judge's verdict.

    None where all claims hold and no judge is asked. Give it to `recover` as what its `check` returns. A
    judge that breaks is an extension that breaks: whoever calls this lets the engine record and pass over it.
    """
    broken = unverified(case.checks)
    if broken is not None:
        return broken.evidence
    return None if judge is None else judge(case)


def by_asking(ask: Callable[[str], str]) -> Judge:
    """A judge out of anything that answers a question in words: a model, a person."""

    def judge(case: JudgeCase) -> Verdict:
        return verdict_in(ask(question(case)))

    return judge


def question(case: JudgeCase) -> str:
    """What a model is asked."""
    calls = "\n".join(f"- {call}" for call in case.calls) or "- none are known"
    checks = "\n".join(f"- {check.claim}: {check.seen}" for check in case.checks) or "- none were made"
    return (
        "You judge finished work. Judge only what is shown, not what is said about it: a claim without something "
        "that shows it counts as nothing.\n\n"
        f"The task:\n{case.task}\n\nWhat was done, the last {CALLS} calls at most:\n{calls}\n\n"
        f"Checked independently:\n{checks}\n\nThe closing answer:\n{case.answer}\n\n"
        f"Give four scores from 0 to {MAX_SCORE}: goal_alignment (is this what was asked for), action_completeness (was "
        "all of it done), evidence_of_completion (does something shown above prove it), final_state_coherence (does "
        "what is left behind fit together). Answer with one JSON object and nothing else: "
        '{"goal_alignment": n, "action_completeness": n, "evidence_of_completion": n, "final_state_coherence": n, '
        '"confidence": 0 to 1, "reasons": "one or two sentences"}'
    )


def verdict_in(text: str) -> Verdict:
    """The verdict in a judge's answer: the last JSON object that has the four scores."""
    text = clip(text, 4 * ANSWER)
    found = find_json_object(text, _NEEDED)
    if found is not None:
        return parse_verdict(found)
    raise ConfigError("verdict", clip(text, 200), "a JSON object with " + ", ".join(DIMENSIONS))


_NEEDED: Final = frozenset({DIMENSIONS[0], "goalAlignment"})
