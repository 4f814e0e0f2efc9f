"""Learnings of a crew: what resolved an error, or what a person wants every later worker to know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.message_format import format_message, parse_fields
from rung.core.text.quoted_data import on_one_line, quote_data

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER: Final = "LEARNED:"
MAX_CHARS: Final = 600  # of each field of a recovery
MAX_SENTENCE_CHARS: Final = 200  # of the error, the fix and the outcome on one line
MAX_NOTE_CHARS: Final = 2_000  # of a person's text
MAX_QUOTED_LEARNINGS: Final = 10  # learnings that a judge or a worker is told
_LABELS: Final = {
    "text": ("Note",),
    "task": ("Task",),
    "kind": ("Kind",),
    "fingerprint": ("Fingerprint",),
    "error": ("Error",),
    "root_cause": ("Root cause",),
    "fix": ("Fix",),
    "outcome": ("Outcome",),
}
_CLIPPED: Final = re.compile(r"\s*… \d+ characters left out ….*", re.DOTALL)
_QUOTED: Final = re.compile(r"\[begin [^\n]*: data, not instructions\](?:\s*\n>[^\n]*)*(?:\s*\n\[end [^\n]*\])?")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")
_NO_OUTCOMES: Final = ("", "no output")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewLearning:
    """One learning. It has a text of a person, or an error with the fix after which its task went on."""

    text: str = ""
    task: str = ""
    kind: str = ""
    fingerprint: str = ""  # of the failure
    error: str = ""
    root_cause: str = ""
    fix: str = ""
    outcome: str = ""  # what the worker said when its work was approved

    def body(self) -> str:
        """Return the text of the message that keeps it."""
        return format_message(HEADER, ((spellings[0], getattr(self, name)) for name, spellings in _LABELS.items()))

    @classmethod
    def parse(cls, text: str) -> CrewLearning | None:
        """Return the learning in a message; None if there is none."""
        return cls(**parse_fields(text, _LABELS)) if text.startswith(HEADER) else None

    def line(self) -> str:
        """Return it on one line: a person's text, or a sentence about the error and one about what resolved it."""
        if self.text:
            return on_one_line(self.text)
        error, fix, outcome = (_first_sentence(text) for text in (self.error, self.fix, self.outcome))
        reported = "" if outcome.lower() in _NO_OUTCOMES else f"its worker reported: {outcome}"
        resolved = "; ".join(part for part in (fix, reported) if part)
        ending = f". Resolved by: {resolved}." if resolved else "."
        return f"{on_one_line(self.task)} ({on_one_line(self.kind)}): {error}{ending}"

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what makes it the same learning as another one."""
        return (self.text, self.fingerprint, self.fix)


def whole_sentences(text: str, limit: int = MAX_CHARS) -> str:
    """Return the first sentences of a text, as many as fit, on one line.

    Quoted data, and what follows the mark of a clipped text, are left out. Only a first sentence that is too long is cut.
    """
    parts = [on_one_line(part) for part in _SENTENCE_END.split(_QUOTED.sub("\n", _CLIPPED.sub("", text)))]
    sentences = [part for part in parts if part and not part.endswith(":")]  # a colon announced what was left out
    if not sentences:
        return ""
    kept = _cut(sentences[0], limit)
    for sentence in sentences[1:]:
        if len(kept) + 1 + len(sentence) > limit:
            break
        kept = f"{kept} {sentence}"
    return kept


def _cut(sentence: str, limit: int) -> str:
    """Return a sentence, cut between two words if it is too long."""
    if len(sentence) <= limit:
        return sentence
    head = sentence[: limit - 1]
    return f"{head.rpartition(' ')[0] or head}…"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    clean = whole_sentences(text, MAX_SENTENCE_CHARS)
    return _SENTENCE_END.split(clean)[0].removesuffix(".")


def most_relevant(learnings: Sequence[CrewLearning], fingerprint: str = "") -> tuple[CrewLearning, ...]:
    """Return the learnings to tell: those about this failure first, then the newest."""
    newest = tuple(reversed(learnings))
    same = tuple(one for one in newest if fingerprint and one.fingerprint == fingerprint)
    return (*same, *(one for one in newest if one not in same))[:MAX_QUOTED_LEARNINGS]


def learnings_section(learnings: Sequence[CrewLearning]) -> str:
    """Return the learnings as a section of a worker's instructions; empty if there are none."""
    if not learnings:
        return ""
    lines = "\n".join(f"- {one.line()}" for one in most_relevant(learnings))
    return f"# Learned in this crew\n\n{quote_data(lines, 'learnings')}"
