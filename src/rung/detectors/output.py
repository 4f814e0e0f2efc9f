"""Check an agent's answer: truncated, empty, malformed, partial, given up, or “done” without evidence."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.classify.phrases import normalized, parse_phrases, words_of
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding
from rung.detectors.judging import strip_thoughts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.claims import ClaimCheck

_LENGTH_STOP_REASONS: Final = frozenset({"max_tokens", "length", "max_output_tokens", "model_length", "incomplete"})
_TAIL_CHARS: Final = 4_000
_GAVE_UP: Final = parse_phrases(
    (
        "i was unable to complete/finish/solve/find",
        "i am/im unable to complete/finish/proceed/continue",
        "i could not/couldnt complete/finish/solve * task/work/problem/request",
        "unable to complete the/this task/request/work",
        "i cannot/cant continue/proceed/complete",
        "i give up",
        "i have to stop here",
        "i must stop here",
        "i ran out of time/turns/steps/ideas/context",
        "left as an exercise",
        "you will/would need/have to * yourself/manually",
        "the rest is left to you/the",
        "i will leave the rest",
        "ill leave the rest",
        "beyond what i can do",
        "no further progress",
    )
)
_CLAIMS_DONE: Final = parse_phrases(
    (
        "done", "all done", "task complete/completed", "is complete/completed/done/finished/fixed/implemented",
        "has/have been completed/implemented/fixed/done", "successfully completed/implemented/fixed", "all tests pass/passed/passing",
        "everything works", "work is finished", "i have completed/implemented/fixed/finished", "ive completed/implemented/fixed/finished",
    )
)  # fmt: skip
_PLACEHOLDER: Final = re.compile(
    r"(?:#|//|/\*|<!--)\s*(?:\.\.\.|…|rest of|remaining|existing|unchanged|same as before|your code here)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSpec:
    """Requirements for an answer: JSON, required sections (headings or keys), evidence for a claim of completion."""

    json: bool = False
    sections: tuple[str, ...] = ()
    evidence: bool = False


def check_output(
    answer: str,
    spec: OutputSpec | None = None,
    *,
    stop_reason: str = "",
    checks: Sequence[ClaimCheck] | None = None,
    acted: bool | None = None,
) -> Finding | None:
    """Return the first problem of an answer; None if there is none.

    `stop_reason` is the provider's stop reason. `checks` are the checked claims, and `acted` says whether any call was
    made: with neither a check nor a call, a claim of completion is unverified.
    """
    spec = spec or OutputSpec()
    text = strip_thoughts(answer)
    if stop_reason.lower() in _LENGTH_STOP_REASONS:
        return _finding("cut", Kind.OUTPUT_LIMIT, "the answer was truncated at its length limit", answer)
    if not text:
        problem = "the answer contains only thinking" if answer.strip() else "the answer is empty"
        return _finding("empty", Kind.MALFORMED_OUTPUT, problem, answer)
    return (
        _malformed(text, spec)
        or _unclosed(text, spec)
        or _partial(text, spec)
        or _gave_up(text)
        or _unproven(text, spec, checks, acted)
    )


def _malformed(text: str, spec: OutputSpec) -> Finding | None:
    if not spec.json:
        return None
    body = _unfenced(text)
    try:
        json.loads(body)
    except RecursionError:
        return _finding("malformed", Kind.MALFORMED_OUTPUT, "the JSON of the answer is nested too deeply", text)
    except ValueError as error:
        if body[:1] in "{[" and _ends_early(error, body):
            return _finding("cut", Kind.OUTPUT_LIMIT, f"the JSON ends before it is complete: {error}", text)
        return _finding("malformed", Kind.MALFORMED_OUTPUT, f"the answer is not JSON: {error}", text)
    return None


def _unfenced(text: str) -> str:
    match = re.fullmatch(r"```\w*\n(.*?)\n?```", text, re.DOTALL)
    return (match[1] if match else text).strip()


def _ends_early(error: ValueError, body: str) -> bool:
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(body) - 1 or error.msg.startswith("Unterminated string")


def _unclosed(text: str, spec: OutputSpec) -> Finding | None:
    """Detect a code fence that is never closed: the end of the answer is missing."""
    if spec.json:
        return None
    fences = re.findall(r"^\s*(```|~~~)", text, re.MULTILINE)
    if len(fences) % 2:
        return _finding("cut", Kind.PARTIAL_OUTPUT, "the answer ends inside a code block", text)
    return None


def _partial(text: str, spec: OutputSpec) -> Finding | None:
    missing = tuple(section for section in spec.sections if not _has_section(text, section, spec))
    if missing:
        return _finding("sections", Kind.PARTIAL_OUTPUT, "missing: " + ", ".join(missing), text, missing)
    if _PLACEHOLDER.search(text):
        return _finding("placeholder", Kind.PARTIAL_OUTPUT, "parts are left out and only hinted at", text)
    return None


def _has_section(text: str, section: str, spec: OutputSpec) -> bool:
    if spec.json:
        found = json.loads(_unfenced(text))
        return isinstance(found, dict) and section in found and found[section] not in (None, "", [], {})
    name = re.escape(section)
    heading = re.compile(
        rf"^\s*(?:#+\s*|\*\*\s*)?(?:[\d.]+\s+)?{name}\s*(?:\*\*)?\s*:?\s*(.*)$", re.IGNORECASE | re.MULTILINE
    )
    match = heading.search(text)
    if match is None:
        return False
    rest = (match[1] + text[match.end() :]).strip()
    return bool(rest) and not rest.startswith("#")  # a heading with nothing under it is no section


def _gave_up(text: str) -> Finding | None:
    flat = normalized(words_of(text[-_TAIL_CHARS:]))
    if any(phrase.found_in(flat) for phrase in _GAVE_UP):
        return _finding(
            "gave-up",
            Kind.GAVE_UP,
            "the answer says that the work was given up: " + clip(" ".join(text[-300:].split()), 300),
            text,
        )
    return None


def _unproven(
    text: str,
    spec: OutputSpec,
    checks: Sequence[ClaimCheck] | None,
    acted: bool | None,  # noqa: FBT001
) -> Finding | None:
    if not spec.evidence or checks or acted:
        return None
    if claims_done(text):
        return _finding("done-unproven", Kind.UNVERIFIED, "the answer claims completion without evidence", text)
    return None


def claims_done(text: str) -> bool:
    """Return whether the end of a text claims that the work is done."""
    flat = normalized(words_of(text[-_TAIL_CHARS:]))
    return any(phrase.found_in(flat) for phrase in _CLAIMS_DONE)


def _finding(rule: str, kind: Kind, text: str, answer: str, missing: tuple[str, ...] = ()) -> Finding:
    return Finding(rule=rule, kind=kind, text=text, phase=Phase.RESULT, missing=missing, output=clip(answer))
