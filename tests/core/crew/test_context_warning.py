"""Context warnings: seven points, and the answer they add up to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.context_warning import ContextDecision, ContextReport, weigh

TEXTS = st.text(max_size=60).map(str.strip)
COUNTS = st.one_of(st.none(), st.integers(0, 50))
REPORTS = st.builds(
    ContextReport,
    usage=st.one_of(st.none(), st.integers(0, 100).map(float)),
    self_correction=st.sampled_from([True, False, None]),
    agents=COUNTS,
    agent_cost=st.none(),
    fit=COUNTS,
    steps=COUNTS,
    deviations=TEXTS,
    proposal=TEXTS,
) | st.builds(ContextReport, agents=st.integers(1, 50), agent_cost=st.integers(0, 100).map(float))
ORDER = tuple(ContextDecision)
GOOD = ContextReport(
    usage=66,
    self_correction=False,
    agents=0,
    fit=1,
    steps=1,
    deviations="none",
    proposal="Finish step 4, run its tests, reach checkpoint 2.",
)


@given(REPORTS)
def test_a_warning_is_read_as_it_was_written(report: ContextReport) -> None:
    """Whatever it says, the message gives the same report again."""
    assert ContextReport.parse(report.body()) == report


@given(st.text(), st.one_of(st.none(), st.floats(0, 100)), st.integers(0, 5))
def test_any_text_gets_an_answer(text: str, estimate: float | None, earlier: int) -> None:
    """No text stops the reader; always seven points and one answer."""
    answer = weigh(ContextReport.parse(text), estimate=estimate, earlier_warnings=earlier)
    assert len(answer.points) == 7
    assert answer.answer in ContextDecision
    assert all(0 <= point.risk <= 2 for point in answer.points)


def test_all_well_proceeds_as_proposed() -> None:
    """Nothing speaks against it: the worker does what it proposed."""
    answer = weigh(GOOD, estimate=40)
    assert answer.answer is ContextDecision.PROCEED
    assert not any(point.risk for point in answer.points)
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
        ({"steps": None}, 3, 1),
        ({"steps": 4}, 3, 1),
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
    """Each of the seven points, at its threshold."""
    assert weigh(replace(GOOD, **change), estimate=40).points[point].risk == risk


def test_earlier_warnings_and_the_sum() -> None:
    """A second warning adds risk, a third more; two points override, five stop, and 75 % stops at once."""
    assert [weigh(GOOD, earlier_warnings=n).answer for n in (0, 1, 2)] == ["proceed", "proceed", "override"]
    override = weigh(replace(GOOD, self_correction=True, steps=9))
    assert override.answer is ContextDecision.OVERRIDE
    assert "Fix: Finish the present step and at most 1 agents, nothing else." in override.body
    assert "Finish the present step, nothing else." in weigh(replace(GOOD, fit=None), earlier_warnings=2).body
    stop = weigh(ContextReport())
    assert stop.answer is ContextDecision.STOP
    assert "Write the hand-over now" in stop.body
    assert sum(bool(point.risk) for point in stop.points) == 6
    assert weigh(replace(GOOD, usage=75.0)).answer is ContextDecision.STOP


@given(REPORTS, st.integers(0, 3))
def test_worse_news_never_gets_a_milder_answer(report: ContextReport, earlier: int) -> None:
    """More usage, another warning, a farther checkpoint, dearer agents or no proposal never help."""
    before = ORDER.index(weigh(report, estimate=30, earlier_warnings=earlier).answer)
    worse = [
        (replace(report, usage=100.0 if report.usage is not None else None), earlier),
        (report, earlier + 1),
        (replace(report, steps=99), earlier),
        (replace(report, proposal=""), earlier),
        (replace(report, self_correction=True), earlier),
    ]
    for changed, warnings in worse:
        assert ORDER.index(weigh(changed, estimate=30, earlier_warnings=warnings).answer) >= before


def test_a_warning_in_a_workers_own_words() -> None:
    """The documented fields, as an agent writes them."""
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
        fit=1,
        deviations="1 (Medium: one more table)",
        proposal="run 1 agent, then hand over",
    )
    assert weigh(report).answer is ContextDecision.STOP
