"""Context warnings: a worker's report that its context window fills up, and the checklist that decides on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rung.core.crew.message_format import (
    format_message,
    format_percent,
    format_yes_no,
    means_none,
    parse_fields,
    parse_int,
    parse_number,
    parse_severity,
    parse_yes_no,
)

WARN_PERCENT: Final = 65.0  # of the context window: the worker sends a warning and finishes only its current step
STOP_PERCENT: Final = 75.0  # of the context window: the worker hands over
UNRELIABLE_FACTOR: Final = 6.0  # by which the estimates of a worker that corrected itself are too low
MAX_NEAR_STEPS: Final = 3  # to the next checkpoint; more steps are a risk
_STOP_RISK: Final = 5
_OVERRIDE_RISK: Final = 2
_MAX_COUNT: Final = 100_000
_MIN_PROPOSAL_WORDS: Final = 3
_SPECIFIC: Final = re.compile(r"\d|/|\b(?:step|checkpoint|agent|test|file|task)s?\b", re.IGNORECASE)
_HEADLINE: Final = re.compile(
    r"\s*context warning:[ \t]*(\d{1,3}(?:\.\d{1,3})?)[ \t]*% used\b[;,. \t]*([^\n]*)", re.IGNORECASE
)
_COST_EACH: Final = re.compile(r"~?\s*(\d{1,3}(?:\.\d{1,3})?)\s*%\s*each", re.IGNORECASE)

# The label that is written for each field, then other spellings that are accepted.
LABELS: Final = {
    "usage": ("Context Usage", "Context", "Usage"),
    "self_correction": ("Self-Correction", "Self Correction"),
    "agents": ("Agents Remaining",),
    "agents_that_fit": ("Agents That Fit in 65% Budget", "Agents That Fit"),
    "steps_to_checkpoint": ("Steps To Checkpoint", "Distance To Checkpoint"),
    "deviations": ("Deviations",),
    "proposal": ("Proposal",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    """A worker's context warning. `usage` and `agent_cost` are per cent of its context; None means not reported."""

    usage: float | None = None
    self_correction: bool | None = None
    agents: int | None = None
    agent_cost: float | None = None
    agents_that_fit: int | None = None
    steps_to_checkpoint: int | None = None
    deviations: str = ""
    proposal: str = ""

    def body(self) -> str:
        """Return the text of a context_warning message."""
        cost = "" if self.agent_cost is None else f" (~{self.agent_cost:g}% each)"
        values = {
            "usage": format_percent(self.usage),
            "self_correction": format_yes_no(self.self_correction),
            "agents": "" if self.agents is None else f"{self.agents}{cost}",
            "agents_that_fit": "" if self.agents_that_fit is None else str(self.agents_that_fit),
            "steps_to_checkpoint": "" if self.steps_to_checkpoint is None else str(self.steps_to_checkpoint),
            "deviations": self.deviations,
            "proposal": self.proposal,
        }
        return format_message("CONTEXT WARNING:", ((spellings[0], values[name]) for name, spellings in LABELS.items()))

    @classmethod
    def parse(cls, text: str) -> ContextReport:
        """Parse any text. Fields that cannot be read count as not reported.

        Usage and proposal may also be in the headline: `CONTEXT WARNING: 65% used; finish step 4 and hand over`.
        """
        headline = _HEADLINE.match(text)
        short = {} if headline is None else {"usage": headline[1], "proposal": headline[2].strip()}
        fields = short | parse_fields(text, LABELS)
        agents = fields.get("agents", "")
        cost_each = _COST_EACH.search(agents)
        return cls(
            usage=parse_number(fields.get("usage", ""), 0, 100),
            self_correction=parse_yes_no(fields.get("self_correction", "")),
            agents=0 if means_none(agents) else parse_int(agents, 0, _MAX_COUNT),
            agent_cost=parse_number(cost_each[1], 0, 100) if cost_each else None,
            agents_that_fit=parse_int(fields.get("agents_that_fit", ""), 0, _MAX_COUNT),
            steps_to_checkpoint=parse_int(fields.get("steps_to_checkpoint", ""), 0, _MAX_COUNT),
            deviations=fields.get("deviations", ""),
            proposal=fields.get("proposal", ""),
        )


class ContextDecision(StrEnum):
    """The answer to a context warning, the mildest first."""

    PROCEED = "proceed"  # as the worker proposed
    OVERRIDE = "override"  # less than the worker proposed, then hand over
    STOP = "stop"  # hand over now


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """One item of the checklist: the risk it adds (0 to 2) and the finding behind it."""

    name: str
    risk: int
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAnswer:
    """The decision on a context warning, the checklist behind it, and the message to the worker."""

    decision: ContextDecision
    checklist: tuple[ChecklistItem, ...]
    body: str


def assess_context(report: ContextReport, *, estimate: float | None = None, earlier_warnings: int = 0) -> ContextAnswer:
    """Decide on a context warning. `estimate` is the context that the plan expects the task to use, in per cent."""
    checklist = (
        _check_self_correction(report),
        _check_usage(report, estimate),
        _check_deviations(report),
        _check_distance(report),
        _check_agents(report),
        _check_earlier_warnings(earlier_warnings),
        _check_proposal(report),
    )
    risk = sum(item.risk for item in checklist)
    is_full = report.usage is not None and report.usage >= STOP_PERCENT
    if risk >= _STOP_RISK or is_full:
        decision = ContextDecision.STOP
    else:
        decision = ContextDecision.OVERRIDE if risk >= _OVERRIDE_RISK else ContextDecision.PROCEED
    findings = [item.finding for item in checklist if item.risk]
    if is_full:
        findings.append(f"{report.usage:g}% of the context is used: from {STOP_PERCENT:g}% on, a new worker takes over")
    reasons = "; ".join(findings) or "no risks found"
    return ContextAnswer(decision=decision, checklist=checklist, body=_format_answer(decision, report, reasons))


def _check_self_correction(report: ContextReport) -> ChecklistItem:
    finding = {
        None: "self-correction was not reported",
        True: "the worker corrected itself: its estimates are about 6 times too low",
        False: "no self-correction",
    }[report.self_correction]
    return ChecklistItem(name="self-correction", risk=0 if report.self_correction is False else 1, finding=finding)


def _check_usage(report: ContextReport, estimate: float | None) -> ChecklistItem:
    name = "usage against estimate"
    if report.usage is None:
        return ChecklistItem(name=name, risk=1, finding="context usage was not reported")
    if estimate is None or report.usage <= 2 * estimate:
        return ChecklistItem(name=name, risk=0, finding=f"{report.usage:g}% used")
    finding = f"{report.usage:g}% used, more than twice the planned {estimate:g}%"
    return ChecklistItem(name=name, risk=1, finding=finding)


def _check_deviations(report: ContextReport) -> ChecklistItem:
    name = "deviations"
    if not report.deviations:
        return ChecklistItem(name=name, risk=1, finding="deviations were not reported")
    risk = {"high": 2, "medium": 1}.get(parse_severity(report.deviations), 0)
    return ChecklistItem(name=name, risk=risk, finding=f"deviations: {report.deviations.splitlines()[0]}")


def _check_distance(report: ContextReport) -> ChecklistItem:
    name = "distance to checkpoint"
    steps = report.steps_to_checkpoint
    if steps is None:
        return ChecklistItem(name=name, risk=1, finding="the distance to the next checkpoint was not reported")
    return ChecklistItem(
        name=name, risk=1 if steps > MAX_NEAR_STEPS else 0, finding=f"{steps} steps to the next checkpoint"
    )


def _check_agents(report: ContextReport) -> ChecklistItem:
    name = "agents remaining"
    if report.agents == 0:
        return ChecklistItem(name=name, risk=0, finding="no agents remaining")
    if report.agents is None or report.agent_cost is None:
        finding = "the number of remaining agents or their cost was not reported"
        return ChecklistItem(name=name, risk=1, finding=finding)
    cost = report.agents * report.agent_cost * (1.0 if report.self_correction is False else UNRELIABLE_FACTOR)
    final_usage = (report.usage or 0.0) + cost
    risk = 2 if final_usage > STOP_PERCENT else 1 if final_usage > WARN_PERCENT else 0
    finding = f"{report.agents} agents remaining, which would bring the usage to about {final_usage:.0f}%"
    return ChecklistItem(name=name, risk=risk, finding=finding)


def _check_earlier_warnings(warnings: int) -> ChecklistItem:
    return ChecklistItem(name="earlier warnings", risk=min(warnings, 2), finding=f"{warnings} earlier warnings")


def _check_proposal(report: ContextReport) -> ChecklistItem:
    name = "proposal"
    if not report.proposal or means_none(report.proposal):
        return ChecklistItem(name=name, risk=2, finding="there is no proposal")
    is_specific = len(report.proposal.split()) >= _MIN_PROPOSAL_WORDS and _SPECIFIC.search(report.proposal) is not None
    finding = "the proposal is " + ("specific" if is_specific else "vague")
    return ChecklistItem(name=name, risk=0 if is_specific else 1, finding=finding)


def _format_answer(decision: ContextDecision, report: ContextReport, reasons: str) -> str:
    if decision is ContextDecision.PROCEED:
        return format_message("CONTEXT: PROCEED as you proposed.", (("Proposal", report.proposal), ("Reason", reasons)))
    if decision is ContextDecision.STOP:
        return format_message(
            "CONTEXT: STOP.",
            (
                ("Reason", reasons),
                ("Fix", "Start nothing new. Write the hand-over now, with what is done and what is not."),
                ("Retry", "Hand over and exit; another session continues."),
            ),
        )
    agents = f" and at most {report.agents_that_fit} agents" if report.agents_that_fit else ""
    return format_message(
        "CONTEXT: OVERRIDE.",
        (
            ("Root cause", reasons),
            ("Fix", f"Finish the current step{agents}, nothing else."),
            ("Retry", "Run the step's tests, then write the hand-over and exit."),
        ),
    )
