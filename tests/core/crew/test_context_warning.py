"""Context warnings: parsing, the seven checklist items, and the decision they add up to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.context_warning import ContextDecision, ContextReport, assess_context

TEXTS = st.text(max_size=60).map(str.strip)
COUNTS = st.one_of(st.none(), st.integers(0, 50))
REPORTS = st.builds(
    ContextReport,
    usage=st.one_of(st.none(), st.integers(0, 100).map(float)),
    self_correction=st.sampled_from([True, False, None]),
    agents=COUNTS,
    agent_cost=st.none(),
    agents_that_fit=COUNTS,
    steps_to_checkpoint=COUNTS,
    deviations=TEXTS,
    proposal=TEXTS,
) | st.builds(ContextReport, agents=st.integers(1, 50), agent_cost=st.integers(0, 100).map(float))
ORDER = tuple(ContextDecision)
GOOD = ContextReport(
    usage=66,
    self_correction=False,
    agents=0,
    agents_that_fit=1,
    steps_to_checkpoint=1,
    deviations="none",
    proposal="Finish step 4, run its tests, reach checkpoint 2.",
)


@given(REPORTS)
def test_a_warning_is_read_as_it_was_written(report: ContextReport) -> None:
    """Any report survives formatting and parsing."""
    assert ContextReport.parse(report.body()) == report


def test_the_headline_may_have_usage_and_proposal() -> None:
    """The statement for workers in SQL has both in one line; a labelled line says it more precisely."""
    text = "CONTEXT WARNING: 65% used; finish step 4, then hand over"
    assert ContextReport.parse(text) == ContextReport(usage=65, proposal="finish step 4, then hand over")
    assert ContextReport.parse(f"{text}\nContext Usage: 66%").usage == 66
    assert ContextReport.parse("CONTEXT WARNING: 80% used") == ContextReport(usage=80)


@given(st.text(), st.one_of(st.none(), st.floats(0, 100)), st.integers(0, 5))
def test_any_text_gets_an_answer(text: str, estimate: float | None, earlier: int) -> None:
    """Any text is parsed; the checklist always has seven items and one decision."""
    answer = assess_context(ContextReport.parse(text), estimate=estimate, earlier_warnings=earlier)
    assert len(answer.checklist) == 7
    assert answer.decision in ContextDecision
    assert all(0 <= point.risk <= 2 for point in answer.checklist)


def test_a_full_context_is_the_reason_to_stop() -> None:
    """Without any other risk, a worker that has used up its context is told that this is why it stops."""
    answer = assess_context(replace(GOOD, usage=80.0), estimate=40)
    assert answer.decision is ContextDecision.STOP
    assert "80% of the context is used" in answer.body
    assert "no risks found" not in answer.body


def test_all_well_proceeds_as_proposed() -> None:
    """Without risks, the worker proceeds as it proposed."""
    answer = assess_context(GOOD, estimate=40)
    assert answer.decision is ContextDecision.PROCEED
    assert not any(point.risk for point in answer.checklist)
    assert "Proposal: Finish step 4" in answer.body


@pytest.mark.parametrize(
    ("change", "point", "risk"),
    [
        ({"self_correction": True}, 0, 1),
        ({"self_correction": None}, 0, 1),
        ({"usage": None}, 1, 1),
        ({"usage": 81.0}, 1, 1),
        ({"deviations": ""}, 2, 1),
        ({"deviations": "2 (High: schema)"}, 2, 2),
        ({"deviations": "1 (Medium: name)"}, 2, 1),
        ({"steps_to_checkpoint": None}, 3, 1),
        ({"steps_to_checkpoint": 4}, 3, 1),
        ({"agents": None}, 4, 1),
        ({"agents": 1, "agent_cost": None}, 4, 1),
        ({"usage": 60.0, "agents": 1, "agent_cost": 4.0}, 4, 0),
        ({"agents": 1, "agent_cost": 4.0}, 4, 1),
        ({"agents": 3, "agent_cost": 4.0}, 4, 2),
        ({"usage": None, "agents": 1, "agent_cost": 11.0, "self_correction": True}, 4, 1),
        ({"proposal": ""}, 6, 2),
        ({"proposal": "none"}, 6, 2),
        ({"proposal": "just keep going somehow"}, 6, 1),
        ({"proposal": "step 4"}, 6, 1),
    ],
)
def test_each_point(change: dict[str, Any], point: int, risk: int) -> None:
    """Each checklist item adds its risk at its threshold."""
    assert assess_context(replace(GOOD, **change), estimate=40).checklist[point].risk == risk


def test_earlier_warnings_and_the_sum() -> None:
    """Earlier warnings add risk; a risk of two overrides, a risk of five stops, and 75 % usage always stops."""
    assert [assess_context(GOOD, earlier_warnings=n).decision for n in (0, 1, 2)] == ["proceed", "proceed", "override"]
    override = assess_context(replace(GOOD, self_correction=True, steps_to_checkpoint=9))
    assert override.decision is ContextDecision.OVERRIDE
    assert "Fix: Finish the current step and at most 1 agents, nothing else." in override.body
    assert (
        "Finish the current step, nothing else."
        in assess_context(replace(GOOD, agents_that_fit=None), earlier_warnings=2).body
    )
    stop = assess_context(ContextReport())
    assert stop.decision is ContextDecision.STOP
    assert "Write the hand-over now" in stop.body
    assert sum(bool(point.risk) for point in stop.checklist) == 6
    assert assess_context(replace(GOOD, usage=75.0)).decision is ContextDecision.STOP


@given(REPORTS, st.integers(0, 3))
def test_worse_news_never_gets_a_milder_answer(report: ContextReport, earlier: int) -> None:
    """More usage, warnings, steps or agent cost, or a missing proposal, never give a milder decision."""
    before = ORDER.index(assess_context(report, estimate=30, earlier_warnings=earlier).decision)
    worse = [
        (replace(report, usage=100.0 if report.usage is not None else None), earlier),
        (report, earlier + 1),
        (replace(report, steps_to_checkpoint=99), earlier),
        (replace(report, proposal=""), earlier),
        (replace(report, self_correction=True), earlier),
    ]
    for changed, warnings in worse:
        assert ORDER.index(assess_context(changed, estimate=30, earlier_warnings=warnings).decision) >= before


def test_a_warning_in_a_workers_own_words() -> None:
    """The documented fields are parsed in an agent's layout."""
    report = ContextReport.parse(
        """CONTEXT WARNING
        Context Usage: 67%
        Self-Correction: YES (reran the migration)
        Agents Remaining: 3 (~4.5% each, ~14% total)
        Agents That Fit in 65% Budget: 1
        Deviations: 1 (Medium: one more table)
        Proposal: run 1 agent, then hand over"""
    )
    assert report == ContextReport(
        usage=67,
        self_correction=True,
        agents=3,
        agent_cost=4.5,
        agents_that_fit=1,
        deviations="1 (Medium: one more table)",
        proposal="run 1 agent, then hand over",
    )
    assert assess_context(report).decision is ContextDecision.STOP
