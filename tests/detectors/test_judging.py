"""The case a judge receives, the parsing of its answer, and the checks that precede it."""

from __future__ import annotations

import json

import pytest

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Evidence
from rung.core.domain.verdict import Verdict
from rung.detectors.claims import ClaimCheck, claimed_files, unverified
from rung.detectors.judging import JudgeCase, assess, judge_case, judge_prompt, model_judge, verdict_in_text
from rung.detectors.step import Step

GOOD = Verdict(goal_alignment=20, action_completeness=20, evidence_of_completion=20, final_state_coherence=20)
SCORES = '{"goal_alignment": 20, "action_completeness": 20, "evidence_of_completion": 20, "final_state_coherence": 20}'


def test_a_judge_never_sees_what_the_worker_thought() -> None:
    """Thinking is removed from answer, calls and results, for every tag; secrets are redacted."""
    case = judge_case(
        "Fix it.",
        "<thinking>SECRET-THOUGHT</thinking>Fixed. <reasoning>SECRET-THOUGHT",
        [
            Step("think", "SECRET-THOUGHT", "OK."),
            Step("", "SECRET-THOUGHT"),
            Step(
                "bash",
                {"command": "pytest", "description": "SECRET-THOUGHT", "reasoning": "SECRET-THOUGHT"},
                "3 passed",
            ),
            Step("ask", "x", "<think>SECRET-THOUGHT</think>yes"),
            Step("bash", "export KEY=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", "", error=True),
        ],
    )
    shown = judge_prompt(case) + json.dumps(case.to_json())
    assert "SECRET-THOUGHT" not in shown
    assert "abcdefghijklmnop" not in shown
    assert "3 passed" in shown
    assert "Fixed." in shown
    assert len(case.calls) == 3


def test_a_case_is_bounded() -> None:
    """The size of a case is bounded."""
    steps = [Step("read", {"path": "x" * 9_000}, "y" * 9_000) for _ in range(500)]
    assert len(judge_prompt(judge_case("t" * 10**6, "a" * 10**6, steps))) < 80_000


def test_claims_come_before_the_judge() -> None:
    """A claim that does not hold needs no judge; otherwise the judge decides; without a judge the result is None."""
    broken = ClaimCheck(claim="a.py was changed", holds=False, seen="there is no such file")
    held = ClaimCheck(claim="`pytest` passes", holds=True, seen="exit code 0")
    asked: list[JudgeCase] = []

    def judge(case: JudgeCase) -> Verdict:
        asked.append(case)
        return GOOD

    found = assess(judge_case("t", "a", checks=[broken, held]), judge)
    assert isinstance(found, Evidence)
    assert (found.finding, found.text) == ("unverified", "a.py was changed: there is no such file")
    assert asked == []
    assert assess(judge_case("t", "a", checks=[held]), judge) is GOOD
    assert asked[0].checks == (held,)
    assert assess(judge_case("t", "a", checks=[held])) is None
    assert unverified([]) is None


@pytest.mark.parametrize(
    "text",
    [
        SCORES,
        f"Here you are:\n```json\n{SCORES}\n```",
        f'{{"a": 1}} then {SCORES} and }} {{',
        SCORES.replace("_a", "A").replace("goal_", "goal"),
    ],
)
def test_a_judges_answer(text: str) -> None:
    """The scores are found in any surrounding text."""
    if "goalA" in text:
        text = (
            text.replace("action_completeness", "actionCompleteness")
            .replace("evidence_of_completion", "evidenceOfCompletion")
            .replace("final_state_coherence", "finalStateCoherence")
        )
    assert model_judge(lambda _: text)(judge_case("t", "a")) == GOOD


@pytest.mark.parametrize("text", ["", "PASS", "{", '{"total": 80}', '{"goal_alignment": 99}'])
def test_no_verdict(text: str) -> None:
    """An answer without the four scores is rejected."""
    with pytest.raises(ConfigError):
        verdict_in_text(text)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("I created src/app.py and updated `docs/guide.md`.", ("src/app.py", "docs/guide.md")),
        ("Fixed the bug in parser.py. See also README.md for more.", ("parser.py",)),
        ("- Added tests/test_x.py\n- Modified Makefile.am", ("tests/test_x.py", "Makefile.am")),
        ("I did not change setup.py; I will update x.py later.", ()),
        ("Look at https://example.org/a/b.html, which was updated.", ()),
        ("Everything works.", ()),
    ],
)
def test_claimed_files(text: str, files: tuple[str, ...]) -> None:
    """A file counts as claimed if the text says that it was changed."""
    assert claimed_files(text) == files
