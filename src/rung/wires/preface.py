"""Prefaces of continuations: "Sure, continuing from where I left off:", or a code fence around the rest of a text.

A model that is asked to continue a text may introduce the rest, although it is told not to. The introduction is no part
of the answer. It is cut only if it speaks of the continuation, or if the text so far is repeated after it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_PREFACE_CHARACTERS: Final = 240
_MIN_REPEATED_CHARACTERS: Final = 8
_OPENERS: Final = (
    "sure", "certainly", "of course", "okay", "ok,", "ok.", "ok!", "absolutely", "understood", "got it", "apologies",
    "sorry", "here is", "here's", "here are", "continuing", "resuming", "picking up", "i'll continue", "i will continue",
    "let me continue", "as requested", "```",
)  # fmt: skip
_BREAK: Final = re.compile(r"[:.!…]+\s+|[:…]|\n+")
_OF_CONTINUATION: Final = re.compile(
    r"\bleft off|\bwhere (?:i|it|we|you) (?:was|were|stopped|had|got)|\b(?:rest|remainder|continuation) of (?:the|my|that)"
    r"|here(?:'s| is) the (?:rest|remainder|continuation)|\bcontinu(?:e|ing|ation)(?: from|:|…|\.\.\.)",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(r"\s*```[\w+.-]*\n")


class Preface(NamedTuple):
    """Preface of a continuation: its length, and whether a code fence surrounds the continuation."""

    length: int = 0
    is_fenced: bool = False


def may_be_preface(text: str) -> bool:
    """Whether a continuation that begins so may have a preface."""
    start = text[:MAX_PREFACE_CHARACTERS].lstrip().lower()
    return any(start.startswith(opener) or opener.startswith(start) for opener in _OPENERS)


def find_preface(previous: str, more: str) -> Preface:
    """Return the preface of a continuation, without what it repeats after it."""
    head = more[:MAX_PREFACE_CHARACTERS]
    if not may_be_preface(head) or _is_repeated(previous, head):
        return Preface()
    in_code = previous.count("```") % 2 == 1
    for end in (0, *(found.end() for found in _BREAK.finditer(head))):
        fence = _FENCE.match(head, end)
        start = end if fence is None else fence.end()
        if start and _is_repeated(previous, head[start:]):
            return Preface(start, fence is not None and not in_code)
        if end and _OF_CONTINUATION.search(head, 0, end):
            return Preface(start if in_code else end)
    fence = _FENCE.match(head)
    return Preface(fence.end() if fence is not None and in_code else 0)


def _is_repeated(previous: str, text: str) -> bool:
    """Whether a text begins with the end of the previous text, or with the previous text itself."""
    start = text[:_MIN_REPEATED_CHARACTERS]
    if len(start) < _MIN_REPEATED_CHARACTERS:
        return False
    if previous.startswith(text) or text.startswith(previous):
        return True
    at = previous.rfind(start)
    while at >= 0:
        if text.startswith(previous[at:]) or previous.startswith(text, at):
            return True
        at = previous.rfind(start, 0, at)
    return False
