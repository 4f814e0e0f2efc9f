"""Instruction files that are wrong: small flaws are edited in place, larger ones have the file written anew."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rung.conductor.helpers import Helped, get_help
from rung.core.errors import AttemptError
from rung.core.failures import Kind, Phase
from rung.core.helping import Flaw, InstructionTrouble, instruction_trouble
from rung.core.stages import sections_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One flaw: what stands there, and what should (where that is known, it can be edited)."""

    flaw: Flaw
    found: str = ""
    instead: str = ""

    def words(self) -> str:
        """How a writer is told."""
        instead = f", instead: {self.instead}" if self.instead else ""
        return f"{self.flaw.value.replace('_', ' ')}: {self.found}{instead}"


def problems_in(text: str, sections: Sequence[str] = ()) -> list[Problem]:
    """What can be seen without knowing the task: that it is empty, or that declared sections are missing."""
    if not text.strip():
        return [Problem(flaw=Flaw.EMPTY, found="there is nothing in it")]
    return [Problem(flaw=Flaw.MISSING_SECTION, found=name) for name in sections_missing(text, sections)]


def mend(
    path: Path,
    problems: Sequence[Problem],
    writer: Callable[[str], str],
    *,
    sections: Sequence[str] = (),
    report: Path | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> Helped[str]:
    """Put a file of instructions right: the text that now stands there, or no value where a person has to.

    The file is only replaced by a whole one, at once; as long as nobody could put it right it stays as it was.
    """
    trouble = instruction_trouble([problem.flaw for problem in problems])
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if trouble is None:
        return Helped(value=text, tries=0)
    edited = _edited(text, problems) if trouble is InstructionTrouble.SMALL else None
    if edited is not None:
        _replace(path, edited)
        return Helped(value=edited, tries=0)

    def read(answer: str) -> str:
        left = problems_in(answer, sections)
        if left:
            said = "; ".join(problem.words() for problem in left)
            missing = tuple(problem.found for problem in left if problem.flaw is Flaw.MISSING_SECTION)
            raise AttemptError(said, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT, missing=missing, output=answer)
        return answer

    wrong = "\n".join(f"- {problem.words()}" for problem in problems)
    prompt = (
        f"These instructions for a worker cannot be used as they are. Write the whole file anew and print nothing "
        f"else.\n\nWhat is wrong:\n{wrong}\n\nThe file {path.name}:\n{text}"
    )
    helped = get_help(f"write {path.name} anew", prompt, writer, read, report=report, sleep=sleep)
    if helped.value is not None:
        _replace(path, helped.value)
    return helped


def _edited(text: str, problems: Sequence[Problem]) -> str | None:
    """The text with every flaw corrected; None where one of them is not to be found, so that nobody edits blindly."""
    for problem in problems:
        if not problem.found or not problem.instead or problem.found not in text:
            return None
        text = text.replace(problem.found, problem.instead)
    return text


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(text, encoding="utf-8")
    new.replace(path)
