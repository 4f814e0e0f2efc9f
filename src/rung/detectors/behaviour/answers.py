"""Answers that ignore the task, in the sure cases: nothing, a question for the task, a demanded form or file that is missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, Phase
from rung.detectors.behaviour.languages import demanded_language, is_other_language
from rung.detectors.behaviour.sentences import MAX_TASK_CHARS, sentences
from rung.detectors.finding import Finding
from rung.detectors.judging import strip_thoughts
from rung.detectors.loops import normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.step import Step

_MIN_TASK_WORDS: Final = 4  # a shorter task may be a greeting
_MAX_QUESTION_CHARS: Final = 500
_ASKS_FOR_TASK: Final = re.compile(
    r"\bhow (?:can|may) i (?:help|assist)(?: you)?\b|\bwhat (?:would you like|do you want) me to (?:do|work on|help with)\?"
    r"|\bwhat (?:is|'s) (?:the|your) (?:task|question|request)\b|\b(?:please|could you(?: please)?|can you(?: please)?) "
    r"(?:provide|share|tell me|give me|specify)(?: me)?(?: with)? (?:the|your|a) (?:actual |specific )?(?:task|question|request|instructions?)\b"
    r"|\bi (?:don't|do not) see (?:a|any|the) (?:task|question|request|instructions?)\b"
    r"|\bno (?:task|question|request) (?:was|has been) (?:provided|given)\b|\bi(?:'m| am) ready to (?:help|assist)\b",
    re.IGNORECASE,
)
_JSON_DEMAND: Final = re.compile(
    r"\b(?:answer|reply|respond)\b[^.]{0,30}\b(?:in|with|as|only)\b[^.]{0,20}\bjson\b"
    r"|\byour (?:final )?(?:answer|reply|response|output) (?:must|should|has to) be\b[^.]{0,20}\bjson\b|\boutput only\b[^.]{0,15}\bjson\b",
    re.IGNORECASE,
)
_YES_OR_NO: Final = re.compile(
    r"\b(?:answer|reply|respond)\s+(?:only\s+|just\s+|simply\s+)?(?:with\s+)?[\"'`“]?yes[\"'`”]?\s+or\s+[\"'`“]?no\b",
    re.IGNORECASE,
)
_FILE_DEMAND: Final = re.compile(
    r"\b(?:write|save|store|put|create|produce|generate)\b[^.;]{0,80}?\b(?:to|in|into|at|as|called|named|file)\s+(?:(?:the|a|file|called|named)\s+)*"
    r"[`\"']?(?P<path>(?:[\w.@~-]*/)*[\w@-][\w@.-]*\.[A-Za-z]\w{0,4})\b",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(
    r"\b(?:not|never|unless|except|if|optional\w*|should you|example|e\.g)\b|n['\u2019]t\b", re.IGNORECASE
)


def ignored_task(task: str, answer: str, steps: Sequence[Step] = ()) -> Finding | None:
    """Return how an answer surely ignores its task; None if it does not, or that cannot be said."""
    text = strip_thoughts(answer)
    if len(task.split()) < _MIN_TASK_WORDS:
        return None
    if not text:
        return _finding("no-answer", Kind.MALFORMED_OUTPUT, "the answer to the task is empty", answer)
    return (
        _asks_back(text) or _other_form(task, text) or _other_language(task, text) or _missing_file(task, text, steps)
    )


def _asks_back(text: str) -> Finding | None:
    asked = _ASKS_FOR_TASK.search(text) if len(text) <= _MAX_QUESTION_CHARS else None
    if asked is None or len(text) - len(asked[0]) > _MAX_AROUND_CHARS:
        return None
    return _finding(
        "asks-for-task", Kind.GOAL_MISALIGNED, f"the answer asks for a task that was given: {asked[0]}", text
    )


_MAX_AROUND_CHARS: Final = 100  # a longer answer contains more than the question


def _other_form(task: str, text: str) -> Finding | None:
    for sentence in sentences(task):
        if _NEGATED.search(sentence):
            continue
        if _JSON_DEMAND.search(sentence) and "{" not in text and "[" not in text:
            return _finding(
                "demanded-form", Kind.MALFORMED_OUTPUT, "the task demands JSON, and the answer has none", text
            )
        if _YES_OR_NO.search(sentence) and not re.search(r"\b(?:yes|no)\b", text, re.IGNORECASE):
            return _finding(
                "demanded-form", Kind.MALFORMED_OUTPUT, "the task demands yes or no, and the answer has neither", text
            )
    return None


def _other_language(task: str, text: str) -> Finding | None:
    language = next((found for sentence in sentences(task) if (found := demanded_language(sentence))), "")
    if not language or not is_other_language(text, language):
        return None
    return _finding(
        "other-language",
        Kind.GOAL_MISALIGNED,
        f"the task demands an answer in {language}, and it is in another language",
        text,
    )


def _missing_file(task: str, text: str, steps: Sequence[Step]) -> Finding | None:
    """Detect a demanded file that no call and no result names; without calls nothing can be said."""
    if not any(step.tool for step in steps):
        return None
    demands = [
        match["path"]
        for sentence in sentences(task)
        if not _NEGATED.search(sentence)
        for match in _FILE_DEMAND.finditer(sentence)
    ]
    names = {path.rpartition("/")[2]: path for path in demands}
    if not names:
        return None
    seen = "\n".join(
        [text, *(normalize.clipped(part, MAX_TASK_CHARS) for step in steps for part in (step.args, step.result))]
    )
    stems = {name: name.rpartition(".")[0] for name in names}
    missing = tuple(path for name, path in names.items() if stems[name] not in seen)
    if not missing:
        return None
    return _finding(
        "demanded-file",
        Kind.PARTIAL_OUTPUT,
        "the task demands a file that no call names: " + ", ".join(missing),
        text,
        missing,
    )


def _finding(rule: str, kind: Kind, text: str, answer: str, missing: tuple[str, ...] = ()) -> Finding:
    return Finding(rule=rule, kind=kind, text=text, count=1, phase=Phase.RESULT, missing=missing, output=answer[:2_000])
