"""A context warning: what a worker says of the room it has left, and the seven points that decide about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rung.core.crew.message_format import (
    fields_in,
    number_in,
    percent,
    says_nothing,
    severity_in,
    whole_in,
    written,
    yes_in,
    yes_or_no,
)

WARNED_AT: Final = 65.0  # per cent of its context: a worker warns, and finishes its present step only
STOPPED_AT: Final = 75.0  # it hands over
UNRELIABLE: Final = 6.0  # times what it estimates, once a worker has had to correct itself
FAR: Final = 3  # steps to the next checkpoint
_STOP_FROM: Final = 5  # points of risk
_OVERRIDE_FROM: Final = 2
_MOST: Final = 100_000
_SPECIFIC: Final = re.compile(r"\d|/|\b(?:step|checkpoint|agent|test|file|task)s?\b", re.IGNORECASE)
_FEW_WORDS: Final = 3
_EACH: Final = re.compile(r"~?\s*(\d{1,3}(?:\.\d{1,3})?)\s*%\s*each", re.IGNORECASE)

LABELS: Final = {
    "usage": ("Context Usage", "Context", "Usage"),
    "self_correction": ("Self-Correction", "Self Correction"),
    "agents": ("Agents Remaining",),
    "fit": ("Agents That Fit in 65% Budget", "Agents That Fit"),
    "steps": ("Steps To Checkpoint", "Distance To Checkpoint"),
    "deviations": ("Deviations",),
    "proposal": ("Proposal",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    """What a worker says: `usage` and `agent_cost` in per cent of its context; None and "" are not said."""

    usage: float | None = None
    self_correction: bool | None = None
    agents: int | None = None
    agent_cost: float | None = None
    fit: int | None = None
    steps: int | None = None
    deviations: str = ""
    proposal: str = ""

    def body(self) -> str:
        """The message of a context_warning."""
        cost = "" if self.agent_cost is None else f" (~{self.agent_cost:g}% each)"
        values = {
            "usage": percent(self.usage),
            "self_correction": yes_or_no(self.self_correction),
            "agents": "" if self.agents is None else f"{self.agents}{cost}",
            "fit": "" if self.fit is None else str(self.fit),
            "steps": "" if self.steps is None else str(self.steps),
            "deviations": self.deviations,
            "proposal": self.proposal,
        }
        return written("CONTEXT WARNING:", ((spellings[0], values[name]) for name, spellings in LABELS.items()))

    @classmethod
    def parse(cls, text: str) -> ContextReport:
        """What any text says; what cannot be read is not said."""
        found = fields_in(text, LABELS)
        agents = found.get("agents", "")
        each = _EACH.search(agents)
        return cls(
            usage=number_in(found.get("usage", ""), 0, 100),
            self_correction=yes_in(found.get("self_correction", "")),
            agents=0 if says_nothing(agents) else whole_in(agents, 0, _MOST),
            agent_cost=number_in(each[1], 0, 100) if each else None,
            fit=whole_in(found.get("fit", ""), 0, _MOST),
            steps=whole_in(found.get("steps", ""), 0, _MOST),
            deviations=found.get("deviations", ""),
            proposal=found.get("proposal", ""),
        )


class ContextDecision(StrEnum):
    """The answer to a context warning, from the mildest."""

    PROCEED = "proceed"  # as the worker proposed
    OVERRIDE = "override"  # less than it proposed, then hand over
    STOP = "stop"  # hand over now


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """One point of the checklist: how much risk it adds (0 to 2), and what was found."""

    name: str
    risk: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAnswer:
    """The answer, the seven points behind it, and the message that tells the worker."""

    answer: ContextDecision
    points: tuple[ChecklistItem, ...]
    body: str


def weigh(report: ContextReport, *, estimate: float | None = None, earlier_warnings: int = 0) -> ContextAnswer:
    """Proceed, override or stop. `estimate`: how much of its context the task was planned to take, in per cent."""
    points = (
        _self_correction(report),
        _usage(report, estimate),
        _deviations(report),
        _distance(report),
        _agents(report),
        _earlier(earlier_warnings),
        _proposal(report),
    )
    risk = sum(point.risk for point in points)
    if risk >= _STOP_FROM or (report.usage is not None and report.usage >= STOPPED_AT):
        answer = ContextDecision.STOP
    else:
        answer = ContextDecision.OVERRIDE if risk >= _OVERRIDE_FROM else ContextDecision.PROCEED
    reasons = "; ".join(point.said for point in points if point.risk) or "nothing speaks against it"
    return ContextAnswer(answer=answer, points=points, body=_told(answer, report, reasons))


def _self_correction(report: ContextReport) -> ChecklistItem:
    said = {
        None: "it does not say whether it corrected itself",
        True: "it corrected itself: its estimates are about 6 times too low",
        False: "it did not have to correct itself",
    }[report.self_correction]
    return ChecklistItem(name="self-correction", risk=0 if report.self_correction is False else 1, said=said)


def _usage(report: ContextReport, estimate: float | None) -> ChecklistItem:
    name = "usage against estimate"
    if report.usage is None:
        return ChecklistItem(name=name, risk=1, said="it does not say how much context it used")
    if estimate is None or report.usage <= 2 * estimate:
        return ChecklistItem(name=name, risk=0, said=f"{report.usage:g}% used")
    return ChecklistItem(name=name, risk=1, said=f"{report.usage:g}% used, more than twice the {estimate:g}% planned")


def _deviations(report: ContextReport) -> ChecklistItem:
    name = "deviations"
    if not report.deviations:
        return ChecklistItem(name=name, risk=1, said="it does not say how far it deviated")
    risk = {"high": 2, "medium": 1}.get(severity_in(report.deviations), 0)
    return ChecklistItem(name=name, risk=risk, said=f"deviations: {report.deviations.splitlines()[0]}")


def _distance(report: ContextReport) -> ChecklistItem:
    name = "distance to checkpoint"
    if report.steps is None:
        return ChecklistItem(name=name, risk=1, said="it does not say how far the next checkpoint is")
    said = f"{report.steps} steps to the next checkpoint"
    return ChecklistItem(name=name, risk=1 if report.steps > FAR else 0, said=said)


def _agents(report: ContextReport) -> ChecklistItem:
    name = "agents left"
    if report.agents == 0:
        return ChecklistItem(name=name, risk=0, said="no agents left to run")
    if report.agents is None or report.agent_cost is None:
        return ChecklistItem(name=name, risk=1, said="it does not say how many agents are left and what each costs")
    cost = report.agents * report.agent_cost * (1.0 if report.self_correction is False else UNRELIABLE)
    end = (report.usage or 0.0) + cost
    risk = 2 if end > STOPPED_AT else 1 if end > WARNED_AT else 0
    return ChecklistItem(name=name, risk=risk, said=f"{report.agents} agents left, which would end at about {end:.0f}%")


def _earlier(warnings: int) -> ChecklistItem:
    return ChecklistItem(name="earlier warnings", risk=min(warnings, 2), said=f"warned {warnings} times before")


def _proposal(report: ContextReport) -> ChecklistItem:
    name = "proposal"
    if not report.proposal or says_nothing(report.proposal):
        return ChecklistItem(name=name, risk=2, said="it proposes nothing")
    specific = len(report.proposal.split()) >= _FEW_WORDS and _SPECIFIC.search(report.proposal) is not None
    return ChecklistItem(
        name=name, risk=0 if specific else 1, said="its proposal is " + ("specific" if specific else "vague")
    )


def _told(answer: ContextDecision, report: ContextReport, reasons: str) -> str:
    if answer is ContextDecision.PROCEED:
        return written("CONTEXT: PROCEED as you proposed.", (("Proposal", report.proposal), ("Reason", reasons)))
    if answer is ContextDecision.STOP:
        return written(
            "CONTEXT: STOP.",
            (
                ("Reason", reasons),
                ("Fix", "Start nothing new. Write the hand-over now, with what is done and what is not."),
                ("Retry", "Hand over and end; another session goes on."),
            ),
        )
    least = "Finish the present step" + (f" and at most {report.fit} agents" if report.fit else "") + ", nothing else."
    return written(
        "CONTEXT: OVERRIDE.",
        (("Root cause", reasons), ("Fix", least), ("Retry", "Run the step's tests, then write the hand-over and end.")),
    )
