"""Helper commands: recovery by kind of failure, three attempts, then a report."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.crew.review import ReviewRequest
from rung.core.domain.failures import GROUPS, Evidence, Failure, Kind
from rung.core.policy.presets import HELPER
from rung.core.policy.templates import preset
from rung.crew.helper_runs import RunningHelper
from rung.crew.judgement import CommandJudgement, WorkerError
from rung.crew.subagent import Question, ask
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
NONE = {"otherwise": True}


class Asker:
    """Asks questions about one task of a crew, and runs the helper at once, without its delay."""

    def __init__(self, tmp_path: Path) -> None:
        self.world = World(tmp_path, 0, stormy=False, tasks=1)
        self.crew = replace(self.world.conductor.crew, jitter=lambda: 0.5)
        self.report = self.crew.runtime_dir / "escalations" / "helpers.md"
        self.delays: list[float] = []
        self.next_step = "the rule's fix"

    def ask(self, command: list[str], *, seconds: float = 60.0, crash_after: int = 99) -> dict[str, Any] | None:
        """Return the answer. The conductor is killed when it has started `crash_after` runs: then None."""
        question = Question(
            name="propose",
            command=tuple(command),
            fields={"task": "task-01"},
            parse=lambda answer: answer,
            otherwise=lambda: NONE,
            next_step=self.next_step,
            seconds=seconds,
        )
        asking = ask(self.crew, self.world.table.require_task("task-01"), question)
        running: RunningHelper | None = None
        while True:
            try:
                run = asking.send(running)
            except StopIteration as end:
                answer: dict[str, Any] = end.value
                return answer
            assert run is not None
            crash_after -= 1
            if crash_after <= 0:
                return None
            self.delays.append(run.delay)
            running = RunningHelper(task_id="task-01", run=replace(run, delay=0.0))
            running.execute()


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    return Asker(tmp_path)


def test_a_good_answer_needs_one_try(tmp_path: Path, asker: Asker) -> None:
    """A valid answer needs one question and writes no report."""
    assert asker.ask(helper(tmp_path, FINE)) == {"fix": "x"}
    assert asked(tmp_path) == [QUESTION]
    assert not asker.report.exists()


def test_transient_trouble_is_asked_again_unchanged(tmp_path: Path, asker: Asker) -> None:
    """A transient failure is retried with the same question, after a backoff with jitter."""
    assert asker.ask(helper(tmp_path, "!503 service unavailable", "!connection reset by peer", FINE)) == {"fix": "x"}
    assert asked(tmp_path) == [QUESTION] * 3
    assert asker.delays == [0.0, 0.5, 1.0]


def test_three_tries_and_no_more(tmp_path: Path, asker: Asker) -> None:
    """A persistent transient failure is reported after the third attempt, with what follows."""
    command = helper(tmp_path, "!503 service unavailable")
    assert asker.ask(command) == NONE
    assert len(asked(tmp_path)) == 3
    text = asker.report.read_text()
    assert text.startswith("# The question 'propose' about task-01 was not answered\n\nHelper failed 3 times")
    assert text.count("- Attempt ") == 3
    assert "Failure category: transient" in text
    assert "Next: the rule's fix" in text
    assert asker.ask(command) == NONE  # the same error comes up again
    assert len(asked(tmp_path)) == 3
    assert asker.report.read_text() == text


def test_three_tries_over_crashes_of_the_conductor(tmp_path: Path, asker: Asker) -> None:
    """The count is in the table: runs that a conductor began before it was killed are among the three."""
    command = helper(tmp_path, "!503 service unavailable")
    assert asker.ask(command, crash_after=2) is None
    assert asker.ask(command, crash_after=1) is None
    assert asker.ask(command) == NONE
    assert len(asked(tmp_path)) == 1
    assert "the conductor ended while the helper was at work" in asker.report.read_text()


def test_another_error_is_another_question(tmp_path: Path, asker: Asker) -> None:
    """The count begins anew with the task's next error."""
    command = helper(tmp_path, "!503 service unavailable")
    assert asker.ask(command) == NONE
    asker.world.table.report_error(asker.world.table.claim("task-01", "s1"), "typo")
    assert asker.ask(command) == NONE
    assert len(asked(tmp_path)) == 6


def test_the_replanner_is_not_named_when_it_was_asked_three_times(tmp_path: Path, asker: Asker) -> None:
    """The report names a person where the plan was already changed as often as it may be."""
    asker.next_step = "the replanner"
    command = helper(tmp_path, "!401 invalid api key")
    assert asker.ask(command) == NONE
    assert "Next: the replanner" in asker.report.read_text()
    asker.world.table.set_fact("consultations", "3")
    asker.world.table.report_error(asker.world.table.claim("task-01", "s1"), "typo")
    assert asker.ask(command) == NONE
    assert asker.report.read_text().endswith("Next: a person decides\n\n")


def test_a_wrong_answer_is_told_what_is_wrong(tmp_path: Path, asker: Asker) -> None:
    """The next question contains the correction and is still JSON."""
    assert asker.ask(helper(tmp_path, "hm", FINE)) == {"fix": "x"}
    first, second = asked(tmp_path)
    assert first == QUESTION
    assert second == {**QUESTION, "correction": "malformed_output: the answer is not a JSON object"}


def test_a_wrong_question_is_told_what_to_look_up(tmp_path: Path, asker: Asker) -> None:
    """The next question names what the helper did not find."""
    command = helper(tmp_path, "!cat: skills/writing.md: No such file or directory", FINE)
    assert asker.ask(command) == {"fix": "x"}
    assert "skills/writing.md" in asked(tmp_path)[1]["look_up"]


def test_the_same_error_in_spite_of_its_correction(tmp_path: Path, asker: Asker) -> None:
    """An error that was already added to the question is not retried."""
    assert asker.ask(helper(tmp_path, "hm")) == NONE
    assert len(asked(tmp_path)) == 2
    assert "Failure category: systemic" in asker.report.read_text()


def test_three_different_errors_are_enough(tmp_path: Path, asker: Asker) -> None:
    """Each new error is added to the question, but the third attempt is the last."""
    command = helper(tmp_path, "hm", "!cat: a/b.md: No such file or directory", "!permission denied", FINE)
    assert asker.ask(command) == NONE
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


def test_systemic_trouble_is_not_asked_again(tmp_path: Path, asker: Asker) -> None:
    """An authentication error is not retried."""
    assert asker.ask(helper(tmp_path, "!401 invalid api key")) == NONE
    assert len(asked(tmp_path)) == 1


def test_a_prompt_in_its_place(tmp_path: Path, asker: Asker) -> None:
    """`{prompt}` in the command is replaced by the question."""
    echo = script(tmp_path / "echo.py", "import sys; print(sys.argv[1], sys.stdin.read())")
    assert asker.ask([*echo, "{prompt}"]) == QUESTION


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path, asker: Asker) -> None:
    """A command that times out is killed in every attempt."""
    marks = tmp_path / "pids"
    slow = script(
        tmp_path / "slow.py",
        "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); time.sleep(60)",
    )
    assert asker.ask([*slow, str(marks)], seconds=1.0) == NONE
    pids = marks.read_text().split()
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_program_that_is_not_there(tmp_path: Path, asker: Asker) -> None:
    """A missing program is tried once."""
    assert asker.ask([str(tmp_path / "gone")]) == NONE
    assert asker.report.read_text().count("not_found: ") == 1


@pytest.mark.parametrize(
    ("judge", "replanner", "next_steps"),
    [
        (["j"], [], ("the rule's fix", "a person decides", "the rule's review", "a person decides")),
        (["j"], ["r"], ("the rule's fix", "the replanner", "the rule's review", "the replanner")),
    ],
)
def test_the_report_names_the_true_next_step(
    asker: Asker, judge: list[str], replanner: list[str], next_steps: tuple[str, ...]
) -> None:
    """After a judge without an answer: the rule where there is one, else the replanner, else a person."""
    judgement, row = CommandJudgement(judge, replanner), asker.world.table.require_task("task-01")
    failure = Failure(Kind.UNKNOWN, retryable=False, rule="test", evidence=Evidence())
    error = WorkerError(task=row, failure=failure, report="", tries=1)
    questions: tuple[Question[Any], ...] = (
        judgement.propose_fix(error),
        judgement.investigate(error),
        judgement.review_work(row, ReviewRequest()),
        judgement.write_instructions(row, "empty", str),
    )
    assert tuple(question.next_step for question in questions) == next_steps
    assert judgement.replan(row, "blocked", {}, lambda plan: plan).next_step == "a person decides"
