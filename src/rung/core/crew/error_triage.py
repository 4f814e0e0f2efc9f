"""A worker's error report, the fix proposal that answers it, and the check for fixes without progress."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import MAX_ERROR_TRIES
from rung.core.crew.message_format import (
    format_message,
    format_percent,
    format_yes_no,
    parse_fields,
    parse_int,
    parse_number,
    parse_yes_no,
)
from rung.core.crew.service_trouble import tells_of_work
from rung.core.domain.failures import Evidence, Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

_LABELS: Final = {
    "context": ("Context Usage", "Context"),
    "self_correction": ("Self-Correction", "Self Correction"),
    "error": ("Error",),
    "tool": ("Tool",),
    "exit_code": ("Exit Code", "Exit"),
    "phase": ("Phase",),
    "report": ("Report",),
}
_PROPOSAL_LABELS: Final = {"root_cause": ("Root cause",), "fix": ("Fix",), "afterwards": ("Retry",)}
_TRAILER: Final = re.compile(r"\s*awaiting conductor.*\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """A worker's error. `tool`, `exit_code` and `phase` tell where it occurred; `report` is the path of a long report."""

    error: str
    context: float | None = None
    self_correction: bool | None = None
    tool: str = ""
    exit_code: int | None = None
    phase: Phase | None = None
    report: str = ""

    def body(self, number: int) -> str:
        """Return the text of an error message. `number` counts the errors of the task."""
        fields = (
            ("Context Usage", format_percent(self.context)),
            ("Self-Correction", format_yes_no(self.self_correction)),
            ("Error", self.error),
            ("Tool", self.tool),
            ("Exit Code", "" if self.exit_code is None else str(self.exit_code)),
            ("Phase", self.phase or ""),
            ("Report", self.report),
        )
        return format_message(f"ERROR (Retry {number}/{MAX_ERROR_TRIES}):", fields)

    @classmethod
    def parse(cls, text: str) -> ErrorReport:
        """Parse any text. Without a line `Error:`, the whole text is the error."""
        fields = parse_fields(_TRAILER.sub("", text), _LABELS)
        return cls(
            error=fields.get("error") or text.strip(),
            context=parse_number(fields.get("context", ""), 0, 100),
            self_correction=parse_yes_no(fields.get("self_correction", "")),
            tool=fields.get("tool", ""),
            exit_code=parse_int(fields.get("exit_code", ""), 0, 255),
            phase=next((phase for phase in Phase if phase == fields.get("phase", "").lower()), None),
            report=fields.get("report", ""),
        )

    def evidence(self, text: str) -> Evidence:
        """Return the evidence for classification. `text` is everything that the worker reported.

        Without a reported phase, an error with a tool, or one that tells of the task's own code or tests, belongs to the
        tool phase, and any other to the call phase.
        """
        is_of_tool = bool(self.tool) or tells_of_work(self.error)
        phase = self.phase or (Phase.TOOL if is_of_tool else Phase.CALL)
        return Evidence(text=text, tool=self.tool, exit_code=self.exit_code, phase=phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixProposal:
    """A proposed fix: the root cause, the change to make, and what to do after it."""

    root_cause: str
    fix: str
    afterwards: str = "Run the failed step again, then continue."

    def body(self, number: int) -> str:
        """Return the text of a fix_proposal message. `number` is that of the task's error it answers."""
        fields = (("Root cause", self.root_cause), ("Fix", self.fix), ("Retry", self.afterwards))
        return format_message(f"FIX PROPOSAL (Retry {number}/{MAX_ERROR_TRIES}):", fields)

    @classmethod
    def parse(cls, text: str) -> FixProposal:
        """Parse a fix_proposal message of anybody. Without a line `Fix:`, the whole text is the fix."""
        fields = parse_fields(text, _PROPOSAL_LABELS)
        return cls(
            root_cause=fields.get("root_cause", ""),
            fix=fields.get("fix") or text.strip(),
            afterwards=fields.get("afterwards", ""),
        )


def no_progress(fingerprints: Sequence[str]) -> bool:
    """Return whether two fixes were already proposed for the last error. `fingerprints` are in order, oldest first."""
    return bool(fingerprints) and fingerprints[:-1].count(fingerprints[-1]) >= _MAX_FIXES_PER_ERROR


_MAX_FIXES_PER_ERROR: Final = 2
CONSIDER_REPLANNING: Final = (
    "Two fixes have not changed this error. If this one does not either, report that at once instead of trying a "
    "variation: the plan may be wrong, not the work."
)
