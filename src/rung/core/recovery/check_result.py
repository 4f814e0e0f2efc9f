"""Evidence from the check of a result. A check that gives no usable answer has verified nothing."""

from __future__ import annotations

from typing import Any

from rung.core.classify.evidence import clip, describe_error, text_of
from rung.core.classify.untrusted_objects import class_name
from rung.core.domain.failures import Evidence, Failure, Kind, Phase
from rung.core.domain.verdict import Verdict

_ANSWERS = "None or True for a good result, else False, a text, evidence, a failure or a verdict"


def evidence_of_check(answer: object, value: Any) -> Evidence | Failure | None:
    """Return the evidence or failure in a check's answer about a value, or None if the result is good."""
    if isinstance(answer, Verdict):
        answer = answer.evidence
    if answer is None or answer is True:
        return None
    if isinstance(answer, Evidence | Failure):
        return answer
    if answer is False:
        text, kind = "the check rejected the result", Kind.TEST_FAILURE
    elif isinstance(answer, str) and answer.strip():
        text, kind = answer, Kind.LOW_QUALITY
    else:
        return _unverified(
            f"the check of the result returned {class_name(answer)} ({text_of(answer, 200)}); it must return {_ANSWERS}",
            value,
        )
    return Evidence(text=clip(text), output=_output(value), finding=kind, phase=Phase.RESULT)


def evidence_of_crash(error: Exception, value: Any) -> Evidence:
    """Return the evidence of a check that raised: the work is kept and not run again, because it is not the cause."""
    return _unverified(f"the check of the result failed: {describe_error(error)}", value)


def _unverified(text: str, value: Any) -> Evidence:
    return Evidence(text=clip(text), output=_output(value), finding=Kind.UNVERIFIED, phase=Phase.RESULT, final=True)


def _output(value: Any) -> str:
    return clip(value) if isinstance(value, str) else ""
