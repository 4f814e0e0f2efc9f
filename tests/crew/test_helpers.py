"""Helper commands: recovery by kind of failure, three attempts, then a report."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import GROUPS, Evidence, Failure, Kind
from rung.core.policy.budget import RetryBudget
from rung.core.policy.policy import preset
from rung.core.policy.presets import HELPER
from rung.crew.dispatch import ensure_instructions
from rung.crew.judgement import CommandJudgement
from rung.crew.subagent import ask_command
from rung.testing import FakeClock
from tests.crew.simulated import World

if TYPE_CHECKING:
    from pathlib import Path


def script(path: Path, body: str) -> list[str]:
    path.write_text(body)
    return [sys.executable, str(path)]


def helper(tmp_path: Path, *answers: str) -> list[str]:
    """Return a command that prints these answers in turn and records its input; `!` marks an error exit."""
    return script(
        tmp_path / "helper.py",
        f"""
import pathlib, sys
asked = pathlib.Path({str(tmp_path / "asked")!r})
before = asked.read_text().splitlines() if asked.exists() else []
asked.write_text("\\n".join([*before, sys.stdin.read()]))
answer = {answers!r}[min(len(before), {len(answers) - 1})]
if answer.startswith("!"):
    sys.exit(answer[1:])
print(answer)
""",
    )


def asked(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]


QUESTION = {"question": "propose", "task": "task-01"}
FINE = '{"fix": "x"}'


def test_a_good_answer_needs_one_try(tmp_path: Path) -> None:
    """A valid answer needs one question and writes no report."""
    report = tmp_path / "e.md"
    assert ask_command(helper(tmp_path, FINE), QUESTION, report=report) == {"fix": "x"}
    assert asked(tmp_path) == [QUESTION]
    assert not report.exists()


def test_transient_trouble_is_asked_again_unchanged(tmp_path: Path) -> None:
    """A transient failure is retried with the same question, after a backoff with jitter."""
    clock = FakeClock()
    command = helper(tmp_path, "!503 service unavailable", "!connection reset by peer", FINE)
    assert ask_command(command, QUESTION, clock=clock, jitter=lambda: 0.5) == {"fix": "x"}
    assert asked(tmp_path) == [QUESTION] * 3
    assert clock.sleeps == [0.5, 1.0]


def test_three_tries_and_no_more(tmp_path: Path) -> None:
    """A persistent transient failure is reported after the third attempt."""
    report = tmp_path / "reports" / "e.md"
    assert ask_command(helper(tmp_path, "!503 service unavailable"), QUESTION, clock=FakeClock(), report=report) is None
    assert len(asked(tmp_path)) == 3
    text = report.read_text()
    assert text.startswith(f"The question 'propose' to {sys.executable} was not answered.")
    assert text.count("- overloaded: 503") + text.count("- server_error: 503") == 3


def test_the_shared_retry_budget_is_honoured(tmp_path: Path) -> None:
    """With an empty retry budget, a transient failure is not retried."""
    empty = RetryBudget(capacity=1)  # less than one retry takes
    assert (
        ask_command(helper(tmp_path, "!503 service unavailable", FINE), QUESTION, clock=FakeClock(), retry_budget=empty)
        is None
    )
    assert len(asked(tmp_path)) == 1


def test_a_wrong_answer_is_told_what_is_wrong(tmp_path: Path) -> None:
    """The next question contains the correction and is still JSON."""
    assert ask_command(helper(tmp_path, "hm", FINE), QUESTION) == {"fix": "x"}
    first, second = asked(tmp_path)
    assert first == QUESTION
    assert second == {**QUESTION, "correction": "malformed_output: the answer is not a JSON object"}


def test_a_wrong_question_is_told_what_to_look_up(tmp_path: Path) -> None:
    """The next question names what the helper did not find."""
    assert ask_command(helper(tmp_path, "!cat: skills/writing.md: No such file or directory", FINE), QUESTION) == {
        "fix": "x"
    }
    assert "skills/writing.md" in asked(tmp_path)[1]["look_up"]


def test_the_same_error_in_spite_of_its_correction(tmp_path: Path) -> None:
    """An error that was already added to the question is not retried."""
    report = tmp_path / "e.md"
    assert ask_command(helper(tmp_path, "hm"), QUESTION, report=report) is None
    assert len(asked(tmp_path)) == 2
    assert "BLOCKED: malformed_output" in report.read_text()


def test_three_different_errors_are_enough(tmp_path: Path) -> None:
    """Each new error is added to the question, but the third attempt is the last."""
    command = helper(tmp_path, "hm", "!cat: a/b.md: No such file or directory", "!permission denied", FINE)
    assert ask_command(command, QUESTION, clock=FakeClock()) is None
    assert len(asked(tmp_path)) == 3


@pytest.mark.parametrize("kind", Kind)
def test_where_a_helpers_failure_enters(kind: Kind) -> None:
    """Each kind enters the helper ladder at retry, fix or person."""
    rung = HELPER.rungs[HELPER.entry_index(Failure(kind, retryable=False, rule="test", evidence=Evidence()))].name
    person = kind in GROUPS["crew"][4:] or kind in {
        Kind.SCOPE_CONFLICT,
        Kind.AUTH_ERROR,
        Kind.MISSING_CREDENTIALS,
        Kind.QUOTA_EXHAUSTED,
        Kind.BUDGET_EXHAUSTED,
        Kind.SERVICE_DOWN,
        Kind.CONTENT_FILTER,
        Kind.REFUSAL,
        Kind.GOAL_MISALIGNED,
        Kind.ARCHITECTURAL_BLOCKER,
        Kind.HOOK_CRASH,
        Kind.CAPABILITY_MISMATCH,
    }
    assert rung == ("retry" if kind in GROUPS["transient"] else "person" if person else "fix")


def test_a_helpers_policy() -> None:
    """The `helper` policy has three attempts."""
    policy = preset(HELPER, "helper")
    assert (policy.name, policy.budget.attempts, policy.ladder.rungs[1].tries) == ("helper", 3, 3)


def test_systemic_trouble_is_not_asked_again(tmp_path: Path) -> None:
    """An authentication error is not retried."""
    assert ask_command(helper(tmp_path, "!401 invalid api key"), QUESTION) is None
    assert len(asked(tmp_path)) == 1


def test_a_prompt_in_its_place(tmp_path: Path) -> None:
    """`{prompt}` in the command is replaced by the question."""
    echo = script(tmp_path / "echo.py", "import sys; print(sys.argv[1], sys.stdin.read())")
    assert ask_command([*echo, "{prompt}"], QUESTION) == QUESTION


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """A command that times out is killed in every attempt."""
    marks = tmp_path / "pids"
    slow = script(
        tmp_path / "slow.py",
        "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); time.sleep(60)",
    )
    assert ask_command([*slow, str(marks)], QUESTION, seconds=1.0, clock=FakeClock()) is None
    pids = marks.read_text().split()
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """A missing program is tried once; an empty command is an error."""
    report, clock = tmp_path / "e.md", FakeClock()
    assert ask_command([str(tmp_path / "gone")], {"question": "review"}, report=report, clock=clock) is None
    assert "The question 'review'" in report.read_text()
    assert report.read_text().count("- not_found: ") == 1
    with pytest.raises(ConfigError):
        ask_command([], {})


def test_missing_instructions_are_written_by_the_judge(tmp_path: Path) -> None:
    """The judge rewrites a missing or empty instruction file; without a judge the task is escalated."""
    world = World(tmp_path, 0, stormy=False, tasks=1)
    path = tmp_path / "new" / "task-01.md"
    world.table.update_columns("task-01", instruction_path=str(path))
    row = world.table.task("task-01")
    assert row is not None
    crew = world.conductor.crew
    judge = CommandJudgement(helper(tmp_path, '{"instructions": "Do it."}'))
    assert ensure_instructions(replace(crew, judgement=judge), row)
    row = world.table.require_task("task-01")
    written = crew.runtime_dir / "instructions" / "task-01.md"
    assert (row.instruction_path, written.read_text()) == (str(written), "Do it.")
    assert [entry.name for entry in written.parent.iterdir()] == ["task-01.md"]
    assert not path.exists()
    assert ensure_instructions(crew, row)
    written.write_text(" \n")
    assert not ensure_instructions(crew, row)
