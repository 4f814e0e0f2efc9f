"""The blocker report: everything that a replanner or a person needs to change the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.contract import TaskState
from rung.core.text.quoted_data import on_one_line, quote_data

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CONSULTATIONS: Final = 3  # of the replanner; then a person is asked
MAX_QUOTED_CHARS: Final = 4_096  # of the error, and of git's output
MAX_ATTEMPT_CHARS: Final = 1_000  # of each message about what was tried
_NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """A problem that cannot be solved within the plan. `tasks` maps every task to its state."""

    summary: str
    attempts: tuple[str, ...]
    reason: str
    affected: tuple[str, ...]
    plan: str
    revision: int
    phase: int
    tasks: Mapping[str, str]
    artifacts: tuple[str, ...] = ()
    git: str = ""

    def body(self, consultation: int) -> str:
        """Return the report for the consultation with this number, as Markdown."""
        complete = sum(state == TaskState.COMPLETE for state in self.tasks.values())
        sections = (
            ("What failed", quote_data(clip(self.summary, MAX_QUOTED_CHARS), "error")),
            ("What was tried", _bullets(tuple(clip(text, MAX_ATTEMPT_CHARS) for text in self.attempts))),
            ("Why this is beyond our authority", on_one_line(self.reason)),
            ("Blocked tasks", _bullets(self.affected)),
            (
                "The plan",
                (
                    f"{self.plan or _NONE}, revision {self.revision}, phase {self.phase}: "
                    f"{complete} of {len(self.tasks)} tasks complete"
                ),
            ),
            ("The state of every task", _bullets(tuple(f"{name}: {state}" for name, state in self.tasks.items()))),
            ("Artifacts", _bullets(self.artifacts)),
            ("The state of git", self._git_section()),
        )
        text = "\n\n".join(f"## {title}\n\n{text.strip() or _NONE}" for title, text in sections)
        return f"# BLOCKER, consultation {consultation} of {MAX_CONSULTATIONS}\n\n{text}\n"

    def _git_section(self) -> str:
        text = clip(self.git, MAX_QUOTED_CHARS)
        return quote_data(text, "output of git") if text.strip() else "not a work tree"


def _bullets(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {on_one_line(item)}" for item in items)
