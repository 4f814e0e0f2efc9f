"""The briefing of a worker: its whole task, and everything that the workers before it have left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.handoff import FIRST_ACTION, HandoffKind

if TYPE_CHECKING:
    from collections.abc import Iterator

# A command gets the briefing as one argument of up to 128 KiB, so only the task itself is passed on in any size.
MAX_HANDOVER_CHARS: Final = 24_000  # of the newest hand-over
MAX_OTHER_CHARS: Final = 4_000  # of an earlier hand-over, of an answer and of a person's message
MAX_HANDOVERS: Final = 3
MAX_REMARKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """Hand-over text of an earlier session of the task."""

    session: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """Everything that the next worker of a task is told."""

    task: str
    instruction: str = ""  # the whole text; empty if it is in a file
    instruction_path: str = ""
    kind: HandoffKind | None = None  # how the last session ended; None if no session had the task since it was opened
    predecessor: str = ""
    starts_over: bool = False  # nothing is known of any work
    reviews_approved: int = 0  # of the work so far
    handovers: tuple[LeftBehind, ...] = ()  # oldest first
    answer: str = ""  # of the conductor to the last session, which that session may not have followed
    saved: tuple[str, ...] = ()  # files with the work of the last session
    remarks: tuple[str, ...] = ()  # of a person, oldest first

    def body(self) -> str:
        """Return the text of the instruction message. The first worker of a task gets the instruction alone."""
        is_first = self.kind is None and not (self.handovers or self.answer or self.saved or self.remarks)
        if is_first:
            return self.instruction or self.instruction_path
        return "\n\n".join((self._header(), f"# Task\n\n{self._task()}", *self._sections()))

    def _header(self) -> str:
        if self.kind is None:
            return f"INSTRUCTION: {self.task}"
        predecessor = self.predecessor or "a lost worker"
        if self.starts_over:
            return (
                f"INSTRUCTION: you take over {self.task} from {predecessor}, which reported no progress."
                " Start from scratch; it may have left changes."
            )
        return f"HANDOFF ({self.kind}): you take over {self.task} from {predecessor}. First: {FIRST_ACTION[self.kind]}."

    def _task(self) -> str:
        return self.instruction or f"Read the instructions in the file {self.instruction_path}"

    def _sections(self) -> Iterator[str]:
        if self.reviews_approved:
            number = self.reviews_approved
            yield f"# Approved work\n\nReviews approved so far: {number}. Keep that work, and continue after it."
        handovers = self.handovers[-MAX_HANDOVERS:]
        for number, one in enumerate(handovers, 1):
            is_newest = number == len(handovers)
            text = clip(one.text.strip(), MAX_HANDOVER_CHARS if is_newest else MAX_OTHER_CHARS)
            yield f"# Hand-over of session {one.session}{'' if is_newest else ' (earlier)'}\n\n{text}"
        if self.kind is HandoffKind.CRASH and handovers:
            yield "A later session ended without a hand-over: it may have changed more than the hand-over says."
        if self.answer:
            yield f"# Last answer to the session before you\n\n{clip(self.answer, MAX_OTHER_CHARS)}"
        if self.saved:
            yield "# Saved work\n\n" + "\n".join(f"- {path}" for path in self.saved)
        if self.remarks:
            remarks = (clip(text, MAX_OTHER_CHARS) for text in self.remarks[-MAX_REMARKS:])
            yield "# Said by a person\n\n" + "\n\n".join(remarks)
