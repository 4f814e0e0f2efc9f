"""A conductor's helpers: how they fail, and what is done about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.failures import Evidence, Failure, Kind
from rung.core.helping import (
    EDITED,
    HELPER_TRIES,
    Escalation,
    Flaw,
    HelperMove,
    HelperTrouble,
    InstructionTrouble,
    Resort,
    after_helper,
    helper_trouble,
    instruction_trouble,
)


def failure(kind: Kind, text: str = "", missing: tuple[str, ...] = ()) -> Failure:
    return Failure(kind, retryable=False, rule="test", message=text, evidence=Evidence(text=text, missing=missing))


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_one_of_four(kind: Kind) -> None:
    """No kind falls through, and what comes again is never milder."""
    order = list(HelperTrouble)
    first, again = (helper_trouble(failure(kind), same_as_before=same) for same in (False, True))
    assert order.index(again) >= order.index(first)


@pytest.mark.parametrize(
    ("kind", "trouble", "again"),
    [
        (Kind.TIMEOUT, "transient", "transient"),
        (Kind.CONTEXT_LIMIT, "transient", "transient"),
        (Kind.NOT_FOUND, "configuration", "systemic"),
        (Kind.MALFORMED_OUTPUT, "logic", "systemic"),
        (Kind.UNKNOWN, "logic", "systemic"),
        (Kind.GOAL_MISALIGNED, "systemic", "systemic"),
        (Kind.MISSING_CREDENTIALS, "systemic", "systemic"),
        (Kind.STRATEGIC_AMBIGUITY, "systemic", "systemic"),
    ],
)
def test_how_a_helper_fails(kind: Kind, trouble: str, again: str) -> None:
    """The four categories; what comes again after it was answered is systemic, but not what passes by itself."""
    assert helper_trouble(failure(kind)) == trouble
    assert helper_trouble(failure(kind), same_as_before=True) == again


def test_a_part_of_an_answer() -> None:
    """Cut off without a reason it is transient; with sections missing it is a matter of saying which."""
    assert helper_trouble(failure(Kind.PARTIAL_OUTPUT)) is HelperTrouble.TRANSIENT
    assert helper_trouble(failure(Kind.PARTIAL_OUTPUT, missing=("tests",))) is HelperTrouble.LOGIC


def test_a_program_that_is_not_there() -> None:
    """No prompt brings a program that cannot be run: systemic at once."""
    gone = Failure(Kind.NOT_FOUND, retryable=False, rule="test", evidence=Evidence(exit_code=127))
    assert helper_trouble(gone) is HelperTrouble.SYSTEMIC


def test_what_is_done_about_a_helper() -> None:
    """Same prompt, prompt put right, correction added, escalated at once; and after three tries always escalated."""
    moves = {trouble: after_helper(trouble, 1) for trouble in HelperTrouble}
    assert moves == {
        HelperTrouble.TRANSIENT: HelperMove.SAME,
        HelperTrouble.CONFIGURATION: HelperMove.FIX_PROMPT,
        HelperTrouble.LOGIC: HelperMove.ADD_CORRECTION,
        HelperTrouble.SYSTEMIC: HelperMove.ESCALATE,
    }
    assert after_helper(HelperTrouble.TRANSIENT, HELPER_TRIES - 1) is HelperMove.SAME
    assert {after_helper(trouble, HELPER_TRIES) for trouble in HelperTrouble} == {HelperMove.ESCALATE}


def test_an_escalation_says_all() -> None:
    """What was asked for, each try, the category, why not again, what is done instead."""
    text = Escalation(
        what="write the instructions of task-04",
        errors=("timed out", "no sections"),
        trouble=HelperTrouble.LOGIC,
        resort=Resort.REPLANNER,
    ).body()
    assert text == (
        "A helper failed 2 times: write the instructions of task-04\n\nErrors:\n- Attempt 1: timed out\n"
        "- Attempt 2: no sections\n\nCategory: logic\n"
        "Why not again: saying what was wrong has not led to a right answer.\nNext: have the plan revised.\n"
    )
    once = Escalation(what="x", errors=("e",), trouble=HelperTrouble.SYSTEMIC, resort=Resort.PERSON).body()
    assert once.startswith("A helper failed once: x")


@given(st.lists(st.sampled_from(Flaw), max_size=8))
def test_when_instructions_are_edited(flaws: list[Flaw]) -> None:
    """A few small flaws are edited; one large flaw, or many small ones, have it written anew; one more never less."""
    trouble = instruction_trouble(flaws)
    if not flaws:
        assert trouble is None
    elif set(flaws) <= EDITED and len(flaws) < 5:
        assert trouble is InstructionTrouble.SMALL
    else:
        assert trouble is InstructionTrouble.LARGE
        assert instruction_trouble([*flaws, Flaw.TYPO]) is InstructionTrouble.LARGE
