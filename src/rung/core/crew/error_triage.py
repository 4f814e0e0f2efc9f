"""A worker's error report, the proposal that answers it, and when corrections make no progress."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import ERROR_TRIES
from rung.core.crew.message_format import fields_in, number_in, percent, whole_in, written, yes_in, yes_or_no
from rung.core.domain.failures import Evidence, Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

_ERROR: Final = {
    "context": ("Context Usage", "Context"),
    "self_correction": ("Self-Correction", "Self Correction"),
    "error": ("Error",),
    "tool": ("Tool",),
    "exit_code": ("Exit Code", "Exit"),
    "phase": ("Phase",),
    "report": ("Report",),
}
_WAITS: Final = re.compile(r"\s*awaiting conductor.*\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """A worker's error. `tool`, `exit_code` and `phase` say where it came up; `report` is the path of a longer account."""

    error: str
    context: float | None = None
    self_correction: bool | None = None
    tool: str = ""
    exit_code: int | None = None
    phase: Phase | None = None
    report: str = ""

    def body(self, number: int) -> str:
        """The message of an error, which is this task's number-th."""
        told = (
            ("Context Usage", percent(self.context)),
            ("Self-Correction", yes_or_no(self.self_correction)),
            ("Error", self.error),
            ("Tool", self.tool),
            ("Exit Code", "" if self.exit_code is None else str(self.exit_code)),
            ("Phase", self.phase or ""),
            ("Report", self.report),
        )
        return written(f"ERROR (Retry {number}/{ERROR_TRIES}):", told)

    @classmethod
    def parse(cls, text: str) -> ErrorReport:
        """What any text says; without a line `Error:` all of it is the error."""
        found = fields_in(_WAITS.sub("", text), _ERROR)
        return cls(
            error=found.get("error") or text.strip(),
            context=number_in(found.get("context", ""), 0, 100),
            self_correction=yes_in(found.get("self_correction", "")),
            tool=found.get("tool", ""),
            exit_code=whole_in(found.get("exit_code", ""), 0, 255),
            phase=next((phase for phase in Phase if phase == found.get("phase", "").lower()), None),
            report=found.get("report", ""),
        )

    def evidence(self, text: str) -> Evidence:
        """The facts for classification; `text` is all that was said. An error of a tool is one of its phase."""
        phase = self.phase or (Phase.TOOL if self.tool else Phase.CALL)
        return Evidence(text=text, tool=self.tool, exit_code=self.exit_code, phase=phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixProposal:
    """A fix: why it failed, what to change, and what to do after that."""

    root_cause: str
    fix: str
    afterwards: str = "Run the step that failed again, then go on."

    def body(self, number: int) -> str:
        """The message of a fix_proposal, which answers the task's number-th error."""
        told = (("Root cause", self.root_cause), ("Fix", self.fix), ("Retry", self.afterwards))
        return written(f"FIX PROPOSAL (Retry {number}/{ERROR_TRIES}):", told)


def no_progress(history: Sequence[str]) -> bool:
    """Is the last error one that two corrections were already made for? `history`: their fingerprints, oldest first."""
    return bool(history) and history[:-1].count(history[-1]) >= _CORRECTED_IN_VAIN


_CORRECTED_IN_VAIN: Final = 2
CONSIDER_REPLANNING: Final = (
    "Two corrections have not changed this error. If this one does not either, say so at once instead of trying a "
    "variation: the plan may be wrong, not the work."
)
