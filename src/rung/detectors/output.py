"""Check an agent's answer: truncated, empty, malformed, partial, given up, or “done” without evidence."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.answer_signs import ends_in_code_block, has_placeholder
from rung.core.classify.answer_statements import claims_completion, statement_signs
from rung.core.classify.answer_text import AnswerText
from rung.core.classify.evidence import clip
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding
from rung.detectors.judging import strip_thoughts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.claims import ClaimCheck

_LENGTH_STOP_REASONS: Final = frozenset({"max_tokens", "length", "max_output_tokens", "model_length", "incomplete"})
_TAIL_CHARS: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSpec:
    """Requirements for an answer.

    Attributes:
        json: Whether it must be JSON. Default: False.
        sections: Headings, or keys of the JSON object, that it must have. Default: none.
        evidence: Whether a claim of completion needs evidence. Default: False.
    """

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
    r"""Return the first problem of an answer; None if there is none.

    Args:
        answer: Text of the answer.
        spec: What the answer must have. Default: it must be complete and no refusal to work.
        stop_reason: The provider's stop reason. Default: unknown.
        checks: Checked claims of the answer. Default: they were not checked.
        acted: Whether any tool was called. With neither a check nor a call, a claim of completion is unverified. Default:
            unknown.

    Example:
        >>> import rung
        >>> found = rung.detect.check_output("# Summary\nAll of it.", rung.detect.OutputSpec(sections=("Summary", "Tests")))
        >>> found.kind.value, found.missing
        ('partial_output', ('Tests',))
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
    if ends_in_code_block(text):
        return _finding("cut", Kind.PARTIAL_OUTPUT, "the answer ends inside a code block", text)
    return None


def _partial(text: str, spec: OutputSpec) -> Finding | None:
    missing = tuple(section for section in spec.sections if not _has_section(text, section, spec))
    if missing:
        return _finding("sections", Kind.PARTIAL_OUTPUT, "missing: " + ", ".join(missing), text, missing)
    if has_placeholder(text):
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
    if "gives-up" in statement_signs(AnswerText(text).prose, text):
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
    return claims_completion(AnswerText(text[-_TAIL_CHARS:]).prose)


def _finding(rule: str, kind: Kind, text: str, answer: str, missing: tuple[str, ...] = ()) -> Finding:
    return Finding(rule=rule, kind=kind, text=text, phase=Phase.RESULT, missing=missing, output=clip(answer))
