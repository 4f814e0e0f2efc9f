"""Steps of a trajectory for the search of its root cause."""

from __future__ import annotations

from rung.core.domain.failures import Kind
from rung.core.recovery.root_cause import root_cause
from rung.detectors.session_steps import session_steps
from rung.detectors.step import Step

PAGE = "Welcome to the page of the orders, which shows the same list of orders as before and nothing else at all."


def test_thoughts_and_words_are_no_steps() -> None:
    """Calls keep their numbers; thoughts and words to the user are left out."""
    steps = [
        Step("think", "hm", ""),
        Step("read", {"path": "a"}, "x"),
        Step("reply_to_user", "hi", "yes"),
        Step("", "text"),
    ]
    assert [one.number for one in session_steps(steps)] == [1]
    assert [one.number for one in session_steps(steps, numbers=(10, 11, 12, 13))] == [11]


def test_what_failed_has_a_kind() -> None:
    """A reported error, an error in the text, and a command killed at its limit are failures."""
    found = session_steps(
        [
            Step("bash", {"command": "cat a.txt"}, "cat: a.txt: No such file or directory", True),
            Step("bash", {"command": "ls"}, "fatal: not a git repository"),
            Step("bash", {"command": "make"}, "The last command timed out and has been killed."),
            Step("edit", {"path": "b"}, "nothing to replace", error="old text not found"),
            Step("edit", {"path": "b"}, "edited"),
        ]
    )
    assert [one.failed for one in found] == [True, True, True, True, False]
    assert found[0].kind is Kind.NOT_FOUND
    assert found[3].text == "old text not found\nnothing to replace"
    assert found[4].changes


def test_a_repetition_without_an_error() -> None:
    """A click that is repeated without effect went wrong the first time."""
    steps = [Step("read", {"path": "a"}, "x"), *[Step("click", {"link": "orders"}, PAGE)] * 4]
    found = root_cause(session_steps(steps))
    assert (found.step, found.kind, len(found.chain)) == (1, Kind.LOOP_DETECTED, 3)


def test_a_repetition_around_a_failure() -> None:
    """If a failure repeats together with harmless calls, the failure is what went wrong."""
    cycle = [
        Step("click", {"link": "red"}, f"{PAGE} Red."),
        Step("click", {"link": "three foot"}, "Invalid action!", True),
    ]
    assert root_cause(session_steps(cycle * 4)).step == 1


def test_a_violated_constraint_went_wrong() -> None:
    """A step that does what the task forbids is the cause, with the sentence that forbids it."""
    steps = [
        Step("bash", {"command": "ls"}, "a.py"),
        Step("edit", {"path": "a.py"}, "edited"),
        Step("read", {"path": "b"}, "x"),
    ]
    found = root_cause(session_steps(steps, "Do not edit `a.py`."))
    assert (found.step, found.kind) == (1, Kind.GOAL_MISALIGNED)
    assert "Do not edit `a.py`" in found.sentence
