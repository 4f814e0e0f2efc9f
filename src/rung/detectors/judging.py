"""Judge finished work: build the case, prompt the judge, parse the verdict.

A judge is any callable that takes a case and returns a verdict: a function, a command, a model behind an adapter. The
case contains the task, the calls and their results, never the worker's reasoning, which could persuade the judge.
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

MAX_PART_CHARS: Final = 12_000  # of the task and of the answer, each
MAX_CALLS: Final = 40  # the last ones
_MAX_ARGS_CHARS: Final = 300
_MAX_RESULT_CHARS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCase:
    """Input of a judge."""

    task: str
    answer: str
    calls: tuple[str, ...] = ()
    checks: tuple[ClaimCheck, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON, for a judge that is another program."""
        checks = [{"claim": check.claim, "holds": check.holds, "seen": check.seen} for check in self.checks]
        return {"task": self.task, "answer": self.answer, "calls": list(self.calls), "checks": checks}


Judge: TypeAlias = Callable[[JudgeCase], Verdict]

_THINKING: Final = re.compile(
    r"<(think|thinking|thought|reasoning|scratchpad|reflection)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)


def strip_thoughts(text: str) -> str:
    """Return the text without the parts tagged as thinking, closed or truncated."""
    return _THINKING.sub("", text).strip()


def judge_case(task: str, answer: str, steps: Sequence[Step] = (), checks: Sequence[ClaimCheck] = ()) -> JudgeCase:
    """Build the case for a judge: thinking removed, secrets redacted, size bounded.

    Args:
        task: What was asked.
        answer: The final answer.
        steps: Steps that the agent took. Default: none are known.
        checks: Checked claims of the answer. Default: none.
    """
    calls = [_format_call(step) for step in steps if step.tool and effect_of(step.tool, None) is not Effect.NONE]
    return JudgeCase(
        task=redacted(clip(task, MAX_PART_CHARS)),
        answer=redacted(clip(strip_thoughts(clip(answer, 4 * MAX_PART_CHARS)), MAX_PART_CHARS)),
        calls=tuple(calls[-MAX_CALLS:]),
        checks=tuple(checks),
    )


def _format_call(step: Step) -> str:
    args = step.args
    if isinstance(args, Mapping):  # these arguments carry the worker's reasoning
        args = {name: value for name, value in args.items() if str(name).lower() not in COSMETIC} or args
    arguments = clip(normalize.clipped(args), _MAX_ARGS_CHARS)
    result = clip(strip_thoughts(normalize.clipped(step.result)), _MAX_RESULT_CHARS)
    return redacted(f"{step.tool}({arguments}) {'failed' if step.error else 'returned'}: {result}")


def assess(case: JudgeCase, judge: Judge | None = None) -> Verdict | Evidence | None:
    """Assess finished work: return evidence of the claims that do not hold, else the judge's verdict.

    Return None if all claims hold and there is no judge. Use it as the result of the `check` that is passed to
    `recover`. Exceptions of the judge propagate: the engine records and handles them.

    Args:
        case: The work, from `judge_case`.
        judge: Function that returns a verdict about a case, such as `model_judge(ask)`. Default: only the claims are checked.
    """
    broken = unverified(case.checks)
    if broken is not None:
        return broken.evidence
    return None if judge is None else judge(case)


def model_judge(ask: Callable[[str], str]) -> Judge:
    """Return a judge that sends a prompt to `ask` (a model, a person) and parses the answer.

    Args:
        ask: Function that sends a prompt to a model, or to a person, and returns the answer.
    """

    def judge(case: JudgeCase) -> Verdict:
        return verdict_in_text(ask(judge_prompt(case)))

    return judge


def judge_prompt(case: JudgeCase) -> str:
    """Return the prompt for a model that judges a case."""
    calls = "\n".join(f"- {call}" for call in case.calls) or "- none recorded"
    checks = "\n".join(f"- {check.claim}: {check.seen}" for check in case.checks) or "- none"
    return (
        "You judge finished work. Judge only what is shown, not what is claimed: a claim without evidence counts as "
        "nothing.\n\n"
        f"The task:\n{case.task}\n\nThe calls that were made (at most the last {MAX_CALLS}):\n{calls}\n\n"
        f"Independent checks:\n{checks}\n\nThe final answer:\n{case.answer}\n\n"
        f"Give four scores from 0 to {MAX_SCORE}: goal_alignment (does the work address the task), action_completeness (is "
        "all of it done), evidence_of_completion (does anything shown above prove it), final_state_coherence (is "
        "the final state consistent). Answer with one JSON object and nothing else: "
        '{"goal_alignment": n, "action_completeness": n, "evidence_of_completion": n, "final_state_coherence": n, '
        '"confidence": 0 to 1, "reasons": "one or two sentences"}'
    )


def verdict_in_text(text: str) -> Verdict:
    """Parse a judge's answer: the last JSON object in it that has the four scores."""
    text = clip(text, 4 * MAX_PART_CHARS)
    scores = find_json_object(text, _REQUIRED_KEYS)
    if scores is not None:
        return parse_verdict(scores)
    raise ConfigError("verdict", clip(text, 200), "a JSON object with " + ", ".join(DIMENSIONS))


_REQUIRED_KEYS: Final = frozenset({DIMENSIONS[0], "goalAlignment"})
