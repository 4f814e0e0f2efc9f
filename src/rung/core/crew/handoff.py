"""A hand-over between two sessions of one task: the file, how far it is to be trusted, what the successor does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rung.core.crew.contract import TaskState
from rung.core.crew.message_format import (
    fields_in,
    number_in,
    percent,
    says_nothing,
    whole_in,
    written,
    yes_in,
    yes_or_no,
)

TRUSTED_TO: Final = 80.0  # per cent of its context: above, what a session says of its own work is not
NEAR: Final = 60.0  # seconds
FEW_DEVIATIONS: Final = 2
_STEPS: Final = 1_000_000

_INFO: Final = {
    "task": ("Task",),
    "session": ("Session", "Session ID"),
    "worked_by": ("Worked by",),
    "reason": ("Exit reason", "Reason"),
    "context": ("Context at exit", "Context Usage", "Context"),
    "step": ("Step",),
    "at": ("Time", "Timestamp"),
}
_LISTS: Final = {
    "completed": "Completed Steps",
    "pending": "Pending Steps",
    "deviations": "Deviations",
    "proposals": "Pending Proposals",
}
_CORRECTION, _NEXT = "Self-Correction", "Next Session Instructions"
_HEADING: Final = re.compile(r"#{1,6}[ \t]+([^\n]*?)[ \t:]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """What one session leaves to the next."""

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
        """The HANDOFF file."""
        info = {name: str(getattr(self, name)) for name in ("task", "session", "worked_by", "reason", "at")} | {
            "context": percent(self.context),
            "step": "" if self.step is None else str(self.step),
        }
        parts = [written("## Session Info", ((spellings[0], info[name]) for name, spellings in _INFO.items()))]
        for name, title in _LISTS.items():
            lines = [f"- {_one_line(line)}" for line in getattr(self, name)] or ["- none"]
            parts.append("\n".join([f"## {title}", *lines]))
        parts += [f"## {_CORRECTION}\n{yes_or_no(self.self_correction) or 'unknown'}"]
        parts += [f"## {_NEXT}\n" + "\n".join(f"> {line}" for line in self.instructions.split("\n"))]
        return "# HANDOFF\n\n" + "\n\n".join(parts) + "\n"

    @classmethod
    def parse(cls, text: str) -> Handoff | None:
        """What a file says; None where it names no session, as nobody can be asked about it then."""
        sections = _sections(text)
        info = fields_in(sections.get("session info", text), _INFO)
        if not info.get("session"):
            return None
        lists = {name: _items(sections.get(title.lower(), "")) for name, title in _LISTS.items()}
        return cls(
            task=info.get("task", ""),
            session=info["session"],
            worked_by=info.get("worked_by", ""),
            reason=info.get("reason", ""),
            context=number_in(info.get("context", ""), 0, 100),
            step=whole_in(info.get("step", ""), 0, _STEPS),
            at=info.get("at", ""),
            self_correction=yes_in(sections.get(_CORRECTION.lower(), "")),
            instructions=_unquoted(sections.get(_NEXT.lower(), "")),
            **lists,
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sections(text: str) -> dict[str, str]:
    """The text under each heading, by the heading in small letters; of two with one name the last counts."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            current = found[heading[1].strip().lower()] = []
        else:
            current.append(line)
    return {title: "\n".join(lines).strip("\n") for title, lines in found.items()}


def _items(text: str) -> tuple[str, ...]:
    lines = (line.strip() for line in text.split("\n"))
    items = (_one_line(re.sub(r"^(?:[-*+]|\d{1,4}[.)])\s+", "", line)) for line in lines if line)
    return tuple(item for item in items if item and not says_nothing(item))


def _unquoted(text: str) -> str:
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in text.split("\n"))


class HandoffKind(StrEnum):
    """How far what a session left can be trusted."""

    CLEAN = "clean"  # go on from it
    DIRTY = "dirty"  # the checkpoint's tests are run again first
    CRASH = "crash"  # trust tests, not claims


def handoff_kind(handoff: Handoff | None) -> HandoffKind:
    """Clean only where there is a file, its session says how full it was, and that is no more than 80 %."""
    if handoff is None:
        return HandoffKind.CRASH
    clean = handoff.context is not None and handoff.context <= TRUSTED_TO
    return HandoffKind.CLEAN if clean else HandoffKind.DIRTY


# What whoever takes over does before anything else.
FIRST: Final = {
    HandoffKind.CLEAN: "run the tests of the last step",
    HandoffKind.DIRTY: "run all tests of the last checkpoint again",
    HandoffKind.CRASH: "trust tests, not claims: verify the last step, distrust the one after it",
}


class Mismatch(StrEnum):
    """How badly a file and the table differ. The table wins in every case."""

    BENIGN = "benign"  # moments or one step apart: go on
    SUSPICIOUS = "suspicious"  # verify before going on
    CONTRADICTORY = "contradictory"  # both cannot be: somebody decides


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDifference:
    """One difference between the file and the table."""

    mismatch: Mismatch
    said: str


def compare(
    handoff: Handoff,
    *,
    state: str,
    session: str = "",
    step: int | None = None,
    seconds_apart: float | None = None,
) -> tuple[StateDifference, ...]:
    """What the file says otherwise than the table: the row's state, session, step, and how far apart in time."""
    found: list[StateDifference] = []
    if state == TaskState.COMPLETE and handoff.pending:
        left = f"the table says {state}, the file has {len(handoff.pending)} steps pending"
        found.append(StateDifference(mismatch=Mismatch.CONTRADICTORY, said=left))
    if session and handoff.session != session:
        other = f"the file is of session {handoff.session}, the table's is {session}"
        found.append(StateDifference(mismatch=Mismatch.SUSPICIOUS, said=other))
    if step is not None and handoff.step is not None and step != handoff.step:
        near = abs(step - handoff.step) <= 1
        said = f"the table is at step {step}, the file at {handoff.step}"
        found.append(StateDifference(mismatch=Mismatch.BENIGN if near else Mismatch.SUSPICIOUS, said=said))
    if seconds_apart is not None and seconds_apart > NEAR:
        said = f"the file is {seconds_apart:.0f} s from the table's last beat"
        found.append(StateDifference(mismatch=Mismatch.SUSPICIOUS, said=said))
    return tuple(found)


_BADNESS: Final = tuple(Mismatch)


def worst(differences: tuple[StateDifference, ...]) -> Mismatch | None:
    """The worst of them; None where there are none."""
    return max((one.mismatch for one in differences), key=_BADNESS.index, default=None)


class ArtifactPresence(StrEnum):
    """What became of the file."""

    PRESENT = "present"
    MISSING = "missing"
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """What a successor says before it goes on."""

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
        """Must the conductor be asked first: more than 2 deviations, or a mismatch that is not benign?"""
        return self.deviations > FEW_DEVIATIONS or worst(self.differences) not in (None, Mismatch.BENIGN)

    def _assess(self) -> str:
        return f"{FIRST[self.kind]}, then {'ask the conductor before going on' if self.must_ask else 'go on'}"

    def body(self) -> str:
        """The message of a resumption."""
        differing = "; ".join(f"{one.mismatch}: {one.said} (the table wins)" for one in self.differences)
        return written(
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
