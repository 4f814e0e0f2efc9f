"""The judge of the stop gate runs last, sees the work without thoughts, and blocks at most twice."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.hooks.test_handlers import call, tell
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from pathlib import Path

JUDGE = """
import json, pathlib, sys
case = json.load(sys.stdin)
seen = pathlib.Path(sys.argv[1])
seen.write_text((seen.read_text() if seen.exists() else "") + json.dumps(case) + "\\n")
names = ("goal_alignment", "action_completeness", "evidence_of_completion", "final_state_coherence")
print(json.dumps(dict(zip(names, json.loads(sys.argv[2])))))
"""


def judged(place: Path, scores: list[int]) -> Path:
    """Configure a judge that returns these scores; return the file that records its input."""
    program, seen = place / "judge.py", place / "seen.jsonl"
    program.write_text(JUDGE)
    command = f"{sys.executable} {program} {seen} {json.dumps(scores, separators=(',', ':'))}"
    write_trusted(place / "rung.toml", f"[stop]\nmax_blocks = 2\njudge = {json.dumps(command)}\n")
    return seen


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_a_bad_verdict_sends_it_back_twice_at_most(tmp_path: Path, agent: str) -> None:
    """Work that fails the verdict is blocked with its scores; after two blocks it finishes as partial."""
    seen = judged(tmp_path, [22, 20, 3, 20])
    tell(tmp_path, agent, "prompt", prompt="find the number")
    call(tmp_path, agent, "cat number", "it is 7", failed=False)
    last = "<think>nobody will notice</think>The number is 7."
    words = {"prompt_response" if agent == "gemini-cli" else "last_assistant_message": last}
    said = [tell(tmp_path, agent, "stop", **words) for _ in range(4)]
    assert ["evidence_of_completion 3" in answer.get("reason", "") for answer in said] == [True, True, False, False]
    assert said[0]["reason"] != said[1]["reason"]
    case = json.loads(seen.read_text().splitlines()[0])
    assert case["task"] == "find the number"
    assert case["answer"] == "The number is 7."
    assert ["it is 7" in shown for shown in case["calls"]] == [True]


def test_the_wrong_goal_asks_for_another_plan(tmp_path: Path) -> None:
    """A misaligned goal is answered with the task, not with a request for evidence."""
    judged(tmp_path, [9, 10, 20, 10])
    answer = tell(tmp_path, "claude-code", "stop", last_assistant_message="The letter is X.")
    assert "Read the task again" in answer["reason"]


def test_a_good_verdict_lets_it_finish(tmp_path: Path) -> None:
    """A good verdict returns an empty response."""
    judged(tmp_path, [22, 20, 20, 20])
    assert tell(tmp_path, "claude-code", "stop", last_assistant_message="The number is 7.") == {}


def test_free_checks_come_first(tmp_path: Path) -> None:
    """A claimed file that does not exist is found without the judge."""
    seen = judged(tmp_path, [22, 20, 20, 20])
    answer = tell(tmp_path, "claude-code", "stop", last_assistant_message="I created result.txt.")
    assert "result.txt" in answer["reason"]
    assert not seen.exists()


@pytest.mark.parametrize("command", ["/nowhere/judge", "echo nonsense", "false"])
def test_a_judge_that_breaks_lets_it_finish(tmp_path: Path, command: str) -> None:
    """A failing judge is logged, and the agent may finish."""
    write_trusted(tmp_path / "rung.toml", f"[stop]\njudge = {json.dumps(command)}\n")
    assert tell(tmp_path, "claude-code", "stop", last_assistant_message="The number is 7.") == {}
    assert "judge" in (tmp_path / "crash.log").read_text()


def test_sections_of_the_closing_words(tmp_path: Path) -> None:
    """`[stop] sections` blocks a stop with a request for the missing sections only."""
    write_trusted(tmp_path / "rung.toml", '[stop]\nsections = ["Summary", "Risks"]\n')
    answer = tell(tmp_path, "claude-code", "stop", last_assistant_message="# Summary\nIt is 7.")
    assert "Complete only what is missing: Risks" in answer["reason"]
    assert tell(tmp_path, "claude-code", "stop", last_assistant_message="# Summary\nIt is 7.\n# Risks\nnone") == {}
