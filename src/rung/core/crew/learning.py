"""Learnings of a crew: what resolved an error, or what a person wants every later worker to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.message_format import format_message, parse_fields
from rung.core.text.quoted_data import on_one_line, quote_data

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER: Final = "LEARNED:"
MAX_CHARS: Final = 300  # of each field
MAX_TOLD: Final = 10  # learnings that a judge or a worker is told
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
        fields = ((spellings[0], clip(getattr(self, name), MAX_CHARS)) for name, spellings in _LABELS.items())
        return format_message(HEADER, fields)

    @classmethod
    def parse(cls, text: str) -> CrewLearning | None:
        """Return the learning in a message; None if there is none."""
        return cls(**parse_fields(text, _LABELS)) if text.startswith(HEADER) else None

    def line(self) -> str:
        """Return it on one line."""
        if self.text:
            return on_one_line(self.text)
        parts = (("", self.error), ("cause: ", self.root_cause), ("fix: ", self.fix), ("then: ", self.outcome))
        said = "; ".join(f"{label}{value}" for label, value in parts if value)
        return on_one_line(f"{self.task} ({self.kind}): {said}")

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what makes it the same learning as another one."""
        return (self.text, self.fingerprint, self.fix)


def most_relevant(learnings: Sequence[CrewLearning], fingerprint: str = "") -> tuple[CrewLearning, ...]:
    """Return the learnings to tell: those about this failure first, then the newest."""
    newest = tuple(reversed(learnings))
    same = tuple(one for one in newest if fingerprint and one.fingerprint == fingerprint)
    return (*same, *(one for one in newest if one not in same))[:MAX_TOLD]


def told_learnings(learnings: Sequence[CrewLearning]) -> str:
    """Return the learnings as a section of a worker's instructions; empty if there are none."""
    if not learnings:
        return ""
    lines = "\n".join(f"- {one.line()}" for one in most_relevant(learnings))
    return f"# Learned in this crew\n\n{quote_data(lines, 'learnings')}"
