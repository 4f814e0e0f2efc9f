"""Hand-overs: the file, its trustworthiness, differences to the table, and the resumption message."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.handoff import (
    ArtifactPresence,
    Handoff,
    HandoffKind,
    Mismatch,
    Resumption,
    StateDifference,
    compare_with_table,
    handoff_kind,
    worst_mismatch,
)
from rung.core.crew.message_format import means_none

TEXTS = st.text(max_size=40).map(str.strip)
ITEMS = st.lists(
    st.text(max_size=30).map(lambda text: " ".join(text.split())).filter(lambda text: text and not means_none(text)),
    max_size=4,
).map(tuple)
HANDOFFS = st.builds(
    Handoff,
    session=TEXTS.filter(bool),
    reason=TEXTS,
    task=TEXTS,
    worked_by=TEXTS,
    at=TEXTS,
    context=st.one_of(st.none(), st.integers(0, 100).map(float)),
    step=st.one_of(st.none(), st.integers(0, 1000)),
    completed=ITEMS,
    pending=ITEMS,
    deviations=ITEMS,
    proposals=ITEMS,
    self_correction=st.sampled_from([True, False, None]),
    instructions=st.text(max_size=80),
)
LEFT = Handoff(session="s1", reason="context", context=70, step=4, completed=("one",), pending=("two", "three"))


@given(HANDOFFS)
def test_a_file_is_read_as_it_was_written(handoff: Handoff) -> None:
    """Any hand-over survives formatting and parsing."""
    assert Handoff.parse(handoff.body()) == handoff


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Any text is parsed; a file without a session is no hand-over."""
    handoff = Handoff.parse(text)
    assert handoff is None or handoff.session


def test_a_file_written_by_hand() -> None:
    """Other headings, numbered lists, bold labels and missing parts are accepted."""
    handoff = Handoff.parse(
        """# HANDOFF
### Session Info:
- **Session ID:** abc-1
- Exit reason: context
- Context at exit: 83%

## Completed steps
1. schema
2. parser

## Pending Steps
- tests
## Deviations
none
"""
    )
    assert handoff == Handoff(
        session="abc-1", reason="context", context=83, completed=("schema", "parser"), pending=("tests",)
    )
    assert Handoff.parse("Session: s9\nReason: killed") == Handoff(session="s9", reason="killed")
    assert Handoff.parse("# HANDOFF\n") is None


def test_how_far_it_is_trusted() -> None:
    """No file means a crash; a usage above 80 %, or an unknown one, makes a hand-over dirty."""
    assert handoff_kind(None) is HandoffKind.CRASH
    assert handoff_kind(replace(LEFT, context=80)) is HandoffKind.CLEAN
    assert handoff_kind(replace(LEFT, context=80.5)) is HandoffKind.DIRTY
    assert handoff_kind(replace(LEFT, context=None)) is HandoffKind.DIRTY


@pytest.mark.parametrize(
    ("state", "session", "step", "apart", "expected"),
    [
        ("exited", "s1", 4, 10.0, []),
        ("exited", "", None, None, []),
        ("exited", "s1", 5, 60.0, ["benign"]),
        ("exited", "s1", 7, 10.0, ["suspicious"]),
        ("exited", "s2", 4, 10.0, ["suspicious"]),
        ("exited", "s1", 4, 61.0, ["suspicious"]),
        ("complete", "s1", 5, 10.0, ["contradictory", "benign"]),
    ],
)
def test_what_differs(state: str, session: str, step: int | None, apart: float | None, expected: list[str]) -> None:
    """One step apart is benign, more is suspicious; a complete task with pending steps is contradictory."""
    found = compare_with_table(LEFT, state=state, session=session, step=step, seconds_apart=apart)
    assert [one.mismatch for one in found] == expected
    assert worst_mismatch(found) == (max(expected, key=tuple(Mismatch).index) if expected else None)


def test_what_the_successor_says() -> None:
    """A resumption names the previous session, the file, the differences, and whether the conductor is asked first."""
    clean = Resumption(
        previous_session="s1", handoff=ArtifactPresence.PRESENT, kind=HandoffKind.CLEAN, resume_point="step 5"
    )
    assert clean.body() == (
        "RESUMPTION: clean hand-over\nPrevious Session: s1\nHandoff: present\nDeviations: 0\nMismatches: none\n"
        "Pending Messages: 0\nAssessment: run the tests of the last step, then continue\nResume Point: step 5"
    )
    assert not clean.must_ask
    benign = (StateDifference(mismatch=Mismatch.BENIGN, detail="one step apart"),)
    assert not replace(clean, differences=benign).must_ask
    odd = (StateDifference(mismatch=Mismatch.SUSPICIOUS, detail="three steps apart"),)
    dirty = Resumption(previous_session="s1", handoff=ArtifactPresence.STALE, kind=HandoffKind.DIRTY, differences=odd)
    assert dirty.must_ask
    assert "suspicious: three steps apart (the table wins)" in dirty.body()
    assert "run all tests of the last checkpoint again, then ask the conductor" in dirty.body()
    crash = Resumption(previous_session="s1", handoff=ArtifactPresence.MISSING, kind=HandoffKind.CRASH, deviations=3)
    assert crash.must_ask
    assert "trust tests, not claims" in crash.body()
