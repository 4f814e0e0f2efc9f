"""Hand-overs between two sessions of one task: the HANDOFF file, how far to trust it, and the resumption message."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rung.core.crew.contract import TaskState
from rung.core.crew.message_format import (
    format_message,
    format_percent,
    format_yes_no,
    means_none,
    parse_fields,
    parse_int,
    parse_number,
    parse_yes_no,
)

MAX_TRUSTED_PERCENT: Final = 80.0  # of its context: a fuller session does not report its own work reliably
MAX_SECONDS_APART: Final = 60.0  # between the file and the table's last heartbeat
MAX_DEVIATIONS: Final = 2  # with more, the next session asks the conductor first
_MAX_STEPS: Final = 1_000_000

_INFO_LABELS: Final = {
    "task": ("Task",),
    "session": ("Session", "Session ID"),
    "worked_by": ("Worked by",),
    "reason": ("Exit reason", "Reason"),
    "context": ("Context at exit", "Context Usage", "Context"),
    "step": ("Step",),
    "at": ("Time", "Timestamp"),
}
_LIST_TITLES: Final = {
    "completed": "Completed Steps",
    "pending": "Pending Steps",
    "deviations": "Deviations",
    "proposals": "Pending Proposals",
}
_CORRECTION_TITLE, _NEXT_TITLE = "Self-Correction", "Next Session Instructions"
_HEADING: Final = re.compile(r"#{1,6}[ \t]+([^\n]*?)[ \t:]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """The hand-over of one session to the next."""

    session: str
    reason: str
    task: str = ""
    worked_by: str = ""
    context: float | None = None
    step: int | None = None
    at: str = ""
    completed: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    self_correction: bool | None = None
    proposals: tuple[str, ...] = ()
    instructions: str = ""

    def body(self) -> str:
        """Return the text of the HANDOFF file."""
        info = {name: str(getattr(self, name)) for name in ("task", "session", "worked_by", "reason", "at")} | {
            "context": format_percent(self.context),
            "step": "" if self.step is None else str(self.step),
        }
        parts = [
            format_message("## Session Info", ((spellings[0], info[name]) for name, spellings in _INFO_LABELS.items()))
        ]
        for name, title in _LIST_TITLES.items():
            lines = [f"- {_one_line(line)}" for line in getattr(self, name)] or ["- none"]
            parts.append("\n".join([f"## {title}", *lines]))
        parts += [f"## {_CORRECTION_TITLE}\n{format_yes_no(self.self_correction) or 'unknown'}"]
        parts += [f"## {_NEXT_TITLE}\n" + "\n".join(f"> {line}" for line in self.instructions.split("\n"))]
        return "# HANDOFF\n\n" + "\n\n".join(parts) + "\n"

    @classmethod
    def read(cls, text: str, session: str) -> Handoff | None:
        """Return the hand-over that a session has written, in any form: a HANDOFF file, or free text. None if it is empty."""
        if not text.strip():
            return None
        first = next(line for line in text.splitlines() if line.strip())
        return cls.parse(text) or cls(session=session, reason=_one_line(first), instructions=text.strip())

    @classmethod
    def parse(cls, text: str) -> Handoff | None:
        """Parse a HANDOFF file. Return None if it names no session, because its origin is unknown then."""
        sections = _sections(text)
        info = parse_fields(sections.get("session info", text), _INFO_LABELS)
        if not info.get("session"):
            return None
        lists = {name: _items(sections.get(title.lower(), "")) for name, title in _LIST_TITLES.items()}
        return cls(
            task=info.get("task", ""),
            session=info["session"],
            worked_by=info.get("worked_by", ""),
            reason=info.get("reason", ""),
            context=parse_number(info.get("context", ""), 0, 100),
            step=parse_int(info.get("step", ""), 0, _MAX_STEPS),
            at=info.get("at", ""),
            self_correction=parse_yes_no(sections.get(_CORRECTION_TITLE.lower(), "")),
            instructions=_unquote(sections.get(_NEXT_TITLE.lower(), "")),
            **lists,
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sections(text: str) -> dict[str, str]:
    """Return the text under each heading, by the heading in lower case; the last of equal headings wins."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            current = sections[heading[1].strip().lower()] = []
        else:
            current.append(line)
    return {title: "\n".join(lines).strip("\n") for title, lines in sections.items()}


def _items(text: str) -> tuple[str, ...]:
    lines = (line.strip() for line in text.split("\n"))
    items = (_one_line(re.sub(r"^(?:[-*+]|\d{1,4}[.)])\s+", "", line)) for line in lines if line)
    return tuple(item for item in items if item and not means_none(item))


def _unquote(text: str) -> str:
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in text.split("\n"))


class HandoffKind(StrEnum):
    """How far the hand-over of a session can be trusted."""

    CLEAN = "clean"  # continue from it
    DIRTY = "dirty"  # run the checkpoint's tests again first
    CRASH = "crash"  # there is none: trust tests, not claims


def handoff_kind(handoff: Handoff | None) -> HandoffKind:
    """Return the kind: clean only if there is a file and its session reports a context usage of at most 80 %."""
    if handoff is None:
        return HandoffKind.CRASH
    clean = handoff.context is not None and handoff.context <= MAX_TRUSTED_PERCENT
    return HandoffKind.CLEAN if clean else HandoffKind.DIRTY


# First action of the session that takes over.
FIRST_ACTION: Final = {
    HandoffKind.CLEAN: "run the tests of the last step",
    HandoffKind.DIRTY: "run all tests of the last checkpoint again",
    HandoffKind.CRASH: "trust tests, not claims: verify the last step, and distrust the one after it",
}


class Mismatch(StrEnum):
    """Severity of a difference between a HANDOFF file and the table. The table always wins."""

    BENIGN = "benign"  # one step apart: continue
    SUSPICIOUS = "suspicious"  # verify before continuing
    CONTRADICTORY = "contradictory"  # both cannot be true: ask the conductor


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDifference:
    """One difference between the HANDOFF file and the table."""

    mismatch: Mismatch
    detail: str


def compare_with_table(
    handoff: Handoff,
    *,
    state: str,
    session: str = "",
    step: int | None = None,
    seconds_apart: float | None = None,
) -> tuple[StateDifference, ...]:
    """Return the differences between a HANDOFF file and the task's row in the table.

    `seconds_apart` is the time between the file and the row's last heartbeat.
    """
    differences: list[StateDifference] = []
    if state == TaskState.COMPLETE and handoff.pending:
        detail = f"the state in the table is {state}, the file has {len(handoff.pending)} pending steps"
        differences.append(StateDifference(mismatch=Mismatch.CONTRADICTORY, detail=detail))
    if session and handoff.session != session:
        detail = f"the file is from session {handoff.session}, the table has session {session}"
        differences.append(StateDifference(mismatch=Mismatch.SUSPICIOUS, detail=detail))
    if step is not None and handoff.step is not None and step != handoff.step:
        mismatch = Mismatch.BENIGN if abs(step - handoff.step) <= 1 else Mismatch.SUSPICIOUS
        detail = f"the table is at step {step}, the file at step {handoff.step}"
        differences.append(StateDifference(mismatch=mismatch, detail=detail))
    if seconds_apart is not None and seconds_apart > MAX_SECONDS_APART:
        detail = f"the file is {seconds_apart:.0f} s apart from the last heartbeat in the table"
        differences.append(StateDifference(mismatch=Mismatch.SUSPICIOUS, detail=detail))
    return tuple(differences)


_SEVERITY: Final = tuple(Mismatch)


def worst_mismatch(differences: tuple[StateDifference, ...]) -> Mismatch | None:
    """Return the most severe mismatch; None if there is none."""
    return max((one.mismatch for one in differences), key=_SEVERITY.index, default=None)


class ArtifactPresence(StrEnum):
    """Whether the HANDOFF file exists and is current."""

    PRESENT = "present"
    MISSING = "missing"
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """Report of the session that takes over, before it continues."""

    previous_session: str
    handoff: ArtifactPresence
    kind: HandoffKind
    differences: tuple[StateDifference, ...] = ()
    deviations: int = 0
    pending_messages: int = 0
    resume_point: str = ""
    assessment: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "assessment", self._assess())

    @property
    def must_ask(self) -> bool:
        """Return whether to ask the conductor first: more than 2 deviations, or a mismatch that is not benign."""
        return self.deviations > MAX_DEVIATIONS or worst_mismatch(self.differences) not in (None, Mismatch.BENIGN)

    def _assess(self) -> str:
        return f"{FIRST_ACTION[self.kind]}, then {'ask the conductor before you continue' if self.must_ask else 'continue'}"

    def body(self) -> str:
        """Return the text of a resumption message."""
        differing = "; ".join(f"{one.mismatch}: {one.detail} (the table wins)" for one in self.differences)
        return format_message(
            f"RESUMPTION: {self.kind} hand-over",
            (
                ("Previous Session", self.previous_session),
                ("Handoff", self.handoff.value),
                ("Deviations", str(self.deviations)),
                ("Mismatches", differing or "none"),
                ("Pending Messages", str(self.pending_messages)),
                ("Assessment", self.assessment),
                ("Resume Point", self.resume_point),
            ),
        )
