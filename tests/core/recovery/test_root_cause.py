"""Root cause of a session: what links failures, and when the search abstains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.recovery.root_cause import MAX_FAILURES, MIN_CONFIDENCE, root_cause
from rung.core.recovery.session_events import steps_of_incidents
from rung.core.recovery.session_step import SessionStep, fact_of, likeness, names_in, subjects_of


def failed(number: int, action: str, call: str, text: str, kind: Kind = Kind.TOOL_ERROR, **facts: Any) -> SessionStep:
    return SessionStep(number=number, action=action, call=call, text=text, failed=True, kind=kind, **facts)


def fine(number: int, action: str = "read", call: str = "a file", **facts: Any) -> SessionStep:
    return SessionStep(number=number, action=action, call=call, text="ok", **facts)


MISSING = "Traceback (most recent call last):\n  File \"a.py\", line 1\nModuleNotFoundError: No module named 'torch'"


def test_an_installation_that_failed() -> None:
    """A package that could not be installed explains the later error that names its module."""
    steps = [
        fine(0),
        failed(1, "bash:pip", "pip install torch flask", "timed out", Kind.TIMEOUT, changes=True),
        fine(2, "bash:pip", "pip install flask", changes=True),
        failed(3, "bash:python", "python a.py", MISSING, Kind.NOT_FOUND),
        fine(4),
    ]
    found = root_cause(steps)
    assert (found.step, found.kind, found.confidence) == (1, Kind.TIMEOUT, 1.0)
    assert [(one.step, one.link) for one in found.chain] == [(3, "it names torch again")]
    assert found.sentence == "Step 1 (bash:pip) went wrong first, timeout: timed out; 1 later failure follows from it."


def test_what_was_installed_since_explains_nothing() -> None:
    """A package that was installed between two failures is not what links them."""
    steps = [
        failed(1, "bash:pip", "pip install torch", "timed out", Kind.TIMEOUT, changes=True),
        fine(2, "bash:conda", "conda install torch", changes=True),
        failed(3, "bash:python", "python a.py", MISSING, Kind.NOT_FOUND),
    ]
    assert root_cause(steps).step is None


def test_the_same_call_again() -> None:
    """A call that fails again in the same way follows from the first; one that succeeded in between does not."""
    book = [
        failed(
            n,
            "book",
            f"one way flight HAT1 to Rome for Ada Lovelace, paid {n}",
            f"the price is 305, but {n} was paid",
            Kind.INVALID_REQUEST,
        )
        for n in (5, 7, 9)
    ]
    found = root_cause([fine(1), *book, fine(10)])
    assert (found.step, [one.step for one in found.chain]) == (5, [7, 9])
    assert found.chain[1].link == "the same call failed in the same way"
    assert root_cause([book[0], fine(6, "book", book[0].call), book[1]]).step is None
    other = book[1]._replace(call="a round trip to Oslo")
    assert root_cause([book[0], other]).chain[0].link == "the same action failed with the same error"


def test_a_chain_of_links() -> None:
    """A failure that follows from a follow-up belongs to the same cause, and says which step it is linked to."""
    steps = [
        failed(1, "bash:pip", "pip install torch", "timed out", Kind.TIMEOUT, changes=True),
        failed(2, "bash:python", "python src/train.py", MISSING + " (needed by src/train.py)", Kind.NOT_FOUND),
        failed(3, "bash:cat", "cat log", "error: src/train.py wrote no log", Kind.TOOL_ERROR),
    ]
    found = root_cause(steps)
    assert (found.step, found.chain[1].link) == (1, "it names src/train.py again (as step 2)")


def test_a_failed_edit_and_its_tests() -> None:
    """A test that fails on the file whose edit failed follows from the edit."""
    steps = [
        failed(1, "edit", "parser.py: old text", "the text was not found in the file", changes=True),
        failed(2, "bash:pytest", "pytest", "FAILED tests/test_parser.py - in parser.py:3", Kind.TEST_FAILURE),
    ]
    found = root_cause(steps)
    assert found.step == 1
    assert "whose edit failed" in found.chain[0].link


def test_a_finding_about_an_earlier_call() -> None:
    """A loop that a detector reported follows from the failure whose call it is about."""
    steps = [
        failed(1, "bash:make", "make", "no rule to make target", Kind.CONFIGURATION),
        failed(2, "loop", "", "bash:make was called 3 times with the same outcome", Kind.LOOP_DETECTED),
    ]
    assert root_cause(steps).chain[0].link == "it is about the same call, bash:make"


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([fine(1), fine(2)], "no failure is recorded"),
        ([failed(1, "a", "x", "boom one"), fine(2)], "the only failure did not end the work"),
        ([failed(1, "a", "x", "alpha"), failed(2, "b", "y", "beta")], "2 failures are not linked"),
        (
            [failed(1, "a", "x", "alpha"), failed(2, "b", "y", "beta"), failed(3, "c", "z", "gamma"), failed(4, "c", "z", "gamma")],
            "the failures have 3 separate beginnings",
        ),
        (
            [failed(1, "a", "x", "alpha"), failed(2, "c", "z", "gamma"), failed(3, "c", "z", "gamma")],
            "a failure before step 2 was never overcome",
        ),
    ],
)  # fmt: skip
def test_it_abstains(steps: list[SessionStep], why: str) -> None:
    """Without a failure, with unrelated failures, or with an earlier one that stands alone, no cause is certain."""
    found = root_cause(steps)
    assert (found.step, found.kind, found.chain, found.confidence) == (None, None, (), 0.0)
    assert found.sentence.startswith(f"No single cause is certain: {why}")


def test_a_single_failure() -> None:
    """A single failure is the cause if it ends the work, is a whole attempt, or breaks the task's rules."""
    step = failed(3, "bash:make", "make", "no rule", Kind.CONFIGURATION)
    assert root_cause([fine(1), step], "failed").step == 3
    assert root_cause([fine(1), step], "recovered").step is None
    assert root_cause([fine(1), step._replace(kind=Kind.UNKNOWN)], "failed").step is None
    assert (
        root_cause([step._replace(is_attempt=True), fine(4)]).sentence
        == "Attempt 3 of the session went wrong first, configuration: no rule."
    )
    assert root_cause([step._replace(kind=Kind.GOAL_MISALIGNED), fine(4)]).confidence == 0.8


def test_names_of_an_error() -> None:
    """The fact of an error is its last exception or its first line with an error word; names are paths, ids and settings."""
    step = failed(1, "bash", "", f"<returncode>1</returncode>\n<output>\n{MISSING}\n</output>")
    assert fact_of(step) == "ModuleNotFoundError: No module named 'torch'"
    assert fact_of(step._replace(text="all well\nerror: it broke\nmore")) == "error: it broke"
    assert subjects_of(step) == {"torch"}
    assert subjects_of(step._replace(text="/bin/sh: 1: ffmpeg: not found")) == {"ffmpeg"}
    assert subjects_of(step._replace(text="cat: conf/app.toml: No such file or directory")) == {
        "conf/app.toml",
        "app.toml",
    }
    assert names_in("flight HAT030, OPENAI_API_KEY and /usr/lib/x.so in src/db.py") == {
        "HAT030", "OPENAI_API_KEY", "src/db.py", "db.py",
    }  # fmt: skip
    assert likeness("", "") == 1.0
    assert likeness("a b", "b c") == pytest.approx(1 / 3)


@given(
    st.lists(
        st.builds(
            SessionStep,
            number=st.integers(0, 50),
            action=st.sampled_from("abc"),
            call=st.sampled_from(["", "pip install x1y2", "make all"]),
            text=st.sampled_from(["", "no such file: src/a.py", "error x1y2", "timed out"]),
            failed=st.booleans(),
            kind=st.sampled_from(Kind),
            changes=st.booleans(),
            is_attempt=st.booleans(),
            origin=st.none() | st.integers(0, 50),
        ),
        max_size=30,
    )
)
def test_an_answer_names_recorded_failures(steps: list[SessionStep]) -> None:
    """Whatever was recorded, the cause and its chain are failed steps, and a doubtful cause is not told."""
    found = root_cause(steps)
    numbers = [step.number for step in steps if step.failed]
    assert found.to_json()["sentence"].endswith(".")
    if found.step is not None:
        assert found.confidence >= MIN_CONFIDENCE
        assert {found.step, *(one.step for one in found.chain)} <= set(numbers)


def test_a_long_session_is_bounded() -> None:
    """Only the first failures of a very long session are compared."""
    steps = [failed(n, "a", "x", "alpha") for n in range(2 * MAX_FAILURES)]
    assert len(root_cause(steps).chain) == MAX_FAILURES - 1


# -- recorded events ----------------------------------------------------------------------------------


def opened(identity: str, ladder: str = "task", model: str = "small") -> ev.Opened:
    return ev.Opened(0.0, identity, ev.IncidentContext(ladder, "p"), Request(prompt="t", model=model))


def attempt_failed(kind: Kind, text: str, **facts: Any) -> ev.AttemptFailed:
    failure = Failure(kind, False, "rule", text, None, Evidence(text=text, **facts))
    return ev.AttemptFailed(1.0, failure, 1.0, 0.0, True)


def test_a_quota_behind_a_fallback() -> None:
    """What fails on the fallback follows from the failure that led to it."""
    events: list[ev.Event] = [
        opened("i1"),
        attempt_failed(Kind.QUOTA_EXHAUSTED, "you exceeded your quota"),
        ev.Decided(2.0, ev.HandOver(3, "large", "", None, "quota_exhausted")),
        ev.Changed(2.0, Request(prompt="t", model="large"), "d", ("model",), ""),
        attempt_failed(Kind.CONTEXT_LIMIT, "the prompt is too long"),
        ev.Decided(3.0, ev.Change(1, Action.COMPACT, 0.0, "context_limit")),
        ev.AttemptSucceeded(4.0, 1.0, 0.0),
    ]
    steps = steps_of_incidents([events])
    assert [(one.number, one.call, one.origin, one.failed) for one in steps] == [
        (1, "small", None, True), (2, "large", 1, True), (3, "large", 1, False),
    ]  # fmt: skip
    found = root_cause(steps, "recovered")
    assert (found.step, found.where) == (1, "i1")
    assert found.chain[0].link == "it ran on the fallback that was taken because of it"


def test_incidents_of_a_session_are_one_story() -> None:
    """A failure of the same kind in a later incident follows from the first; numbers run through the session."""
    one: list[ev.Event] = [opened("i1"), attempt_failed(Kind.AUTH_ERROR, "invalid key")]
    two: list[ev.Event] = [opened("i2", model="large"), attempt_failed(Kind.AUTH_ERROR, "this key was revoked")]
    found = root_cause(steps_of_incidents([one, two]), "failed")
    assert (found.step, found.where, [(link.step, link.where) for link in found.chain]) == (1, "i1", [(2, "i2")])


def test_failures_behind_hooks_are_calls() -> None:
    """In a session of an agent behind hooks a failure is a tool call, except an interruption of the agent itself."""
    events: list[ev.Event] = [
        opened("h", "session"),
        attempt_failed(Kind.NOT_FOUND, "cat: conf/app.toml: No such file or directory", tool="bash", phase=Phase.TOOL),
        attempt_failed(Kind.TEST_FAILURE, "FAILED: cannot read conf/app.toml", tool="run_tests", phase=Phase.TOOL),
        attempt_failed(Kind.UNVERIFIED, "the agent claims to be done", phase=Phase.RESULT),
        ev.AttemptSucceeded(4.0, 1.0, 0.0),
        attempt_failed(Kind.OVERLOADED, "overloaded"),
    ]
    steps = steps_of_incidents([events])
    assert [(one.action, one.is_attempt) for one in steps] == [
        ("bash", False), ("run_tests", False), ("rule", False), ("attempt", True),
    ]  # fmt: skip
    assert root_cause(steps[:3], "partial").step == 1
