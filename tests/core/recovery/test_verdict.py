"""Verdicts of a judge, and the evidence of a failed one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind, Phase
from rung.core.domain.verdict import DIMENSIONS, Grade, Verdict, parse_verdict

SCORES = st.integers(0, 25)


def verdict(goal: int, completeness: int, evidence: int, coherence: int, reasons: str = "") -> Verdict:
    return Verdict(
        goal_alignment=goal,
        action_completeness=completeness,
        evidence_of_completion=evidence,
        final_state_coherence=coherence,
        reasons=reasons,
    )


@given(SCORES, SCORES, SCORES, SCORES)
def test_grades(goal: int, completeness: int, evidence: int, coherence: int) -> None:
    """From 70 it passes and from 60 under conditions, but only with enough evidence; a grade but fail is no evidence."""
    judged = verdict(goal, completeness, evidence, coherence)
    total = goal + completeness + evidence + coherence
    assert judged.total == total
    if evidence < 15 or total < 60:
        assert judged.grade is Grade.FAIL
    else:
        assert judged.grade is (Grade.PASS if total >= 70 else Grade.CONDITIONAL)
    assert (judged.evidence is None) is (judged.grade is not Grade.FAIL)


@pytest.mark.parametrize(
    ("scores", "grade"),
    [
        ((25, 25, 14, 25), Grade.FAIL),
        ((20, 20, 15, 15), Grade.PASS),
        ((20, 20, 15, 14), Grade.CONDITIONAL),
        ((15, 15, 15, 15), Grade.CONDITIONAL),
        ((15, 15, 15, 14), Grade.FAIL),
        ((0, 25, 25, 25), Grade.PASS),
    ],
)
def test_grades_at_their_limits(scores: tuple[int, int, int, int], grade: Grade) -> None:
    """Each limit belongs to the better grade."""
    assert verdict(*scores).grade is grade


@pytest.mark.parametrize(
    ("scores", "kind"),
    [
        ((14, 5, 5, 5), Kind.GOAL_MISALIGNED),
        ((15, 5, 7, 5), Kind.UNVERIFIED),
        ((15, 5, 8, 5), Kind.LOW_QUALITY),
        ((25, 25, 14, 25), Kind.LOW_QUALITY),
        ((25, 25, 0, 25), Kind.UNVERIFIED),
    ],
)
def test_what_a_failed_verdict_shows(scores: tuple[int, int, int, int], kind: Kind) -> None:
    """The wrong goal weighs more than missing proof, and missing proof more than poor work."""
    evidence = verdict(*scores, reasons="because").evidence
    assert evidence is not None
    assert (evidence.finding, evidence.phase) == (kind, Phase.RESULT)
    assert classify(evidence).kind is kind
    assert evidence.text.startswith(f"judged {sum(scores)} of 100 (goal_alignment {scores[0]}, ")
    assert evidence.text.endswith("): because")


def test_a_verdict_without_reasons() -> None:
    """Where the judge gives no reasons the scores speak for themselves."""
    evidence = verdict(0, 1, 2, 3).evidence
    assert evidence is not None
    assert evidence.text.endswith("final_state_coherence 3)")


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("score", [-1, 26, math.nan, 20.5, "20", None, True])
def test_scores_are_bounded(name: str, score: Any) -> None:
    """A score outside 0 to 25 is refused at once, with its name and value."""
    scores = dict.fromkeys(DIMENSIONS, 10)
    with pytest.raises(ConfigError) as raised:
        Verdict(**{**scores, name: score})
    assert raised.value.key == f"verdict.{name}"
    assert raised.value.value is score


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, "high"])
def test_confidence_is_bounded(confidence: Any) -> None:
    """How sure a judge is goes from 0 to 1."""
    scores: dict[str, Any] = dict.fromkeys(DIMENSIONS, 10)
    with pytest.raises(ConfigError, match=r"verdict\.confidence"):
        Verdict(**scores, confidence=confidence)


@pytest.mark.parametrize(
    ("scores", "confidence"),
    [((10, 10, 10, 10), 0.4), ((20, 20, 19, 20), 0.79), ((20, 20, 20, 20), 0.9), ((25, 25, 25, 25), 1.0)],
)
def test_confidence_of_the_scores(scores: tuple[int, int, int, int], confidence: float) -> None:
    """Where the judge does not say how sure it is the scores do, and much evidence makes surer."""
    assert verdict(*scores).confidence == confidence


def test_where_a_failed_verdict_enters() -> None:
    """Missing proof is nudged for, the wrong goal planned anew, and both at once take the higher rung."""
    from rung.core.policy.presets import LADDERS

    ladder = LADDERS["task"]

    def rung(*scores: int) -> str:
        goal, completeness, proof, coherence = scores
        evidence = verdict(goal, completeness, proof, coherence).evidence
        assert evidence is not None
        return ladder.rungs[ladder.entry_index(classify(evidence))].name

    assert rung(20, 20, 7, 20) == "nudge"
    assert rung(14, 20, 20, 5) == "replan"
    assert rung(14, 20, 7, 20) == "replan"


@pytest.mark.parametrize(
    "names", [DIMENSIONS, ("goalAlignment", "actionCompleteness", "evidenceOfCompletion", "finalStateCoherence")]
)
def test_a_judges_json(names: tuple[str, ...]) -> None:
    """Scores are read under either way of writing their names, whole floats too; what else is there is passed over."""
    table = dict(zip(names, (20, 19, 18.0, 17), strict=True))
    found = parse_verdict({**table, "confidence": 0.9, "reasoning": "it ran", "more": 1})
    assert found == Verdict(
        goal_alignment=20,
        action_completeness=19,
        evidence_of_completion=18,
        final_state_coherence=17,
        reasons="it ran",
        confidence=0.9,
    )
    assert parse_verdict({**table, "reasons": ["a"]}).reasons == "['a']"


def test_a_judges_json_that_lacks_a_score() -> None:
    """A missing score is refused by its name."""
    with pytest.raises(ConfigError, match=r"verdict\.evidence_of_completion: None"):
        parse_verdict({"goal_alignment": 1, "action_completeness": 1, "final_state_coherence": 1})
