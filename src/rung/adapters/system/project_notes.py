"""The project's notes in a run: known failures and open issues are read before it, and what it learned is added after it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.learnings_file import Learning, LearningsFile, LearningsIssue, load_notes
from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.text.quoted_data import on_one_line, quote_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.core.domain.failures import Failure

MAX_CHARACTERS: Final = 4_000  # of the text for a model
MAX_ENTRY_CHARACTERS: Final = 400
_CLOSED: Final = ("resolved", "won't fix", "wont fix", "closed", "done")
_IMPORTANCE: Final = ("CRITICAL", "HIGH", "MEDIUM", "LOW")


class ProjectNotes(LearningsFile):
    """Notes of a project, for `recover(…, notes=ProjectNotes("notes"))`: read before a run, added to after it.

    A relative folder may not lead elsewhere by a link: a cloned repository could lead it to any of the user's files.
    """

    def __init__(self, folder: str | Path, *, max_characters: int = MAX_CHARACTERS) -> None:
        super().__init__(folder)
        self._max_characters = max_characters

    def read(self, failure: Failure | None = None) -> str:
        """Return open issues and learnings as quoted data; after a failure, those about it alone. Empty if there are none."""
        self._check_place()
        learnings, issues = load_notes(self.folder)
        lines = [*map(_issue_line, _open(issues, failure)), *map(_learning_line, _ranked(learnings, failure))]
        text = _fit(lines, self._max_characters)
        return text and quote_data(redacted(text), "project notes")

    def _check_place(self) -> None:
        expected = os.path.normpath(Path.cwd().resolve() / self.folder)
        if not self.folder.is_absolute() and os.path.realpath(expected) != expected:
            raise OSError(f"{self.folder}: not used, because a link leads to another place")


def _open(issues: Iterable[LearningsIssue], failure: Failure | None) -> list[LearningsIssue]:
    """Return the issues that are not closed, the newest first."""
    found = [issue for issue in issues if issue.status.lower() not in _CLOSED]
    if failure is not None:
        found = [issue for issue in found if issue.fingerprint == failure.fingerprint]
    return found[::-1]


def _ranked(learnings: Iterable[Learning], failure: Failure | None) -> list[Learning]:
    """Return the learnings, the most important and newest first."""
    found = [each for each in learnings if failure is None or _kind(each) == failure.kind.value]
    rank = {name: place for place, name in enumerate(_IMPORTANCE)}
    newest_first = list(reversed(found))
    return sorted(newest_first, key=lambda each: rank.get(each.importance, len(rank)))


def _kind(learning: Learning) -> str:
    return re.sub(r"[\s-]+", "_", learning.category.lower())


def _issue_line(issue: LearningsIssue) -> str:
    parts = {"Root cause": issue.root_cause or issue.description, "Workaround": issue.workaround}
    facts = " ".join(f"{name}: {value}." for name, value in parts.items() if value)
    return _line(f"Open issue {issue.number} ({issue.severity or 'severity unknown'}): {issue.title}. {facts}")


def _learning_line(learning: Learning) -> str:
    return _line(f"Learning ({learning.category}): {learning.title}. {learning.body}")


def _line(text: str) -> str:
    return on_one_line(clip(text, MAX_ENTRY_CHARACTERS))


def _fit(lines: list[str], limit: int) -> str:
    """Return the first lines that fit, and how many do not."""
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(kept) + len(line) > limit:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"({left} more in the files)"] if left else kept)
