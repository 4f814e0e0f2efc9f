"""A judge that is a program, really run."""

from __future__ import annotations

import sys

import pytest

from rung.adapters.system.judge import CommandJudge
from rung.core.domain.errors import ConfigError, JudgeError
from rung.core.domain.verdict import Grade
from rung.detectors.judging import assess, judge_case

JUDGE = """
import json, sys
case = json.load(sys.stdin)
score = 25 if "42" in case["answer"] else 5
names = ("goal_alignment", "action_completeness", "evidence_of_completion", "final_state_coherence")
print("thinking aloud {not json}")
print(json.dumps({**dict.fromkeys(names, score), "reasons": case["task"]}))
"""


def command(code: str, seconds: float = 30) -> CommandJudge:
    return CommandJudge([sys.executable, "-c", code], seconds)


def test_a_verdict() -> None:
    """It is given the case and its JSON is read, whatever else it prints."""
    found = command(JUDGE)(judge_case("Say 42.", "It is 42."))
    assert (found.grade, found.reasons) == (Grade.PASS, "Say 42.")
    bad = assess(judge_case("Say 42.", "It is 7."), command(JUDGE))
    assert bad is not None
    assert bad.evidence.finding == "goal_misaligned"  # type: ignore[union-attr]  # a verdict, since no claim was broken


def test_no_verdict() -> None:
    """A judge that fails, hangs, is not there or says nothing is an error that names it."""
    case = judge_case("t", "a")
    with pytest.raises(JudgeError, match="exit code 3: broken"):
        command("import sys; sys.stderr.write('broken'); sys.exit(3)")(case)
    with pytest.raises(JudgeError, match=r"no verdict within 0\.3 s"):
        command("import time; time.sleep(60)", 0.3)(case)
    with pytest.raises(JudgeError, match="cannot be run"):
        CommandJudge("no-such-judge")(case)
    with pytest.raises(ConfigError, match="verdict"):
        command("print('PASS')")(case)
