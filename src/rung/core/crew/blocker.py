"""The blocker report a replanner or a person is given: everything they need, and nothing they must ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

CONSULTATIONS: Final = 3  # of a replanner; then a person
NOTHING: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What stands in the way. `tasks` has the state of each; what is empty is said to be."""

    what: str
    tries: tuple[str, ...]
    why_beyond: str
    affected: tuple[str, ...]
    plan: str
    revision: int
    phase: int
    tasks: Mapping[str, str]
    artifacts: tuple[str, ...] = ()
    git: str = ""

    def body(self, consultation: int) -> str:
        """The report for the consultation of this number."""
        done = sum(state == TaskState.COMPLETE for state in self.tasks.values())
        sections = (
            ("What failed", self.what),
            ("What was tried", _list(self.tries)),
            ("Why this is beyond our authority", self.why_beyond),
            ("Tasks it stops", _list(self.affected)),
            (
                "The plan",
                (
                    f"{self.plan or NOTHING}, revision {self.revision}, phase {self.phase}: "
                    f"{done} of {len(self.tasks)} tasks complete"
                ),
            ),
            ("The state of every task", _list(tuple(f"{name}: {state}" for name, state in self.tasks.items()))),
            ("Artifacts", _list(self.artifacts)),
            ("The state of git", self.git.strip() or "not a work tree"),
        )
        told = "\n\n".join(f"## {title}\n\n{text.strip() or NOTHING}" for title, text in sections)
        return f"# BLOCKER, consultation {consultation} of {CONSULTATIONS}\n\n{told}\n"


def _list(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items)
