"""A conductor's helpers: each failure answered in its own way, three tries, then somebody else."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from rung.conductor.helpers import Command, ask, get_help, json_in
from rung.conductor.instructions import Problem, mend, problems_in
from rung.core.errors import AttemptError, ConfigError, TimeUp
from rung.core.failures import Kind
from rung.core.helping import Flaw, Resort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def helper(*answers: str | Exception) -> tuple[Callable[[str], str], list[str]]:
    """One that gives these answers, and what it was asked."""
    asked: list[str] = []

    def give(prompt: str) -> str:
        asked.append(prompt)
        answer = answers[min(len(asked), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return give, asked


def script(path: Path, body: str) -> list[str]:
    path.write_text(body)
    return [sys.executable, str(path)]


def test_a_good_answer_needs_nobody_else() -> None:
    """One try, no escalation."""
    give, asked = helper("fine")
    helped = get_help("x", "do x", give, str)
    assert (helped.value, helped.tries, helped.resort, helped.escalation) == ("fine", 1, None, "")
    assert asked == ["do x"]


def test_transient_trouble_is_asked_the_same_again() -> None:
    """The prompt does not change, and each pause is longer than the one before."""
    give, asked = helper(TimeoutError("timed out"), ConnectionResetError("reset"), "fine")
    pauses: list[float] = []
    helped = get_help("x", "do x", give, str, sleep=pauses.append)
    assert (helped.value, helped.tries) == ("fine", 3)
    assert asked == ["do x"] * 3
    assert pauses == [1.0, 2.0]


def test_three_tries_and_no_more() -> None:
    """What was called transient and does not pass is escalated after the third try."""
    give, asked = helper(TimeoutError("timed out"))
    helped = get_help("write task-04", "do x", give, str, sleep=lambda _: None)
    assert (helped.value, helped.tries, helped.resort) == (None, 3, Resort.PERSON)
    assert len(asked) == 3
    assert "A helper failed 3 times: write task-04" in helped.escalation
    assert "Category: transient" in helped.escalation
    assert "- Attempt 3: timeout" in helped.escalation
    assert "Next: a person decides." in helped.escalation


def test_a_wrong_prompt_is_put_right_first() -> None:
    """A missing file is never asked for in the same words; where nobody can put it right it is not asked again."""
    missing = FileNotFoundError(2, "No such file or directory", "skills/writing.md")
    give, asked = helper(missing, "fine")
    helped = get_help(
        "x", "read skills/writing.md", give, str, fix_prompt=lambda prompt, _: prompt.replace("writing", "copyist")
    )
    assert helped.value == "fine"
    assert asked == ["read skills/writing.md", "read skills/copyist.md"]
    give, asked = helper(missing, "fine")
    assert get_help("x", "read it", give, str).value == "fine"
    assert "What is named there is wrong" in asked[1]
    give, asked = helper(missing, "fine")
    stuck = get_help("x", "read it", give, str, fix_prompt=lambda prompt, _: prompt)
    assert (stuck.value, len(asked)) == (None, 1)
    assert "Category: configuration" in stuck.escalation


def test_a_wrong_answer_is_told_what_is_wrong() -> None:
    """The correction stands in the next prompt; the same again in spite of it is systemic, and not tried a third time."""
    give, asked = helper("no json", '{"a": 1}')
    assert get_help("x", "do x", give, json_in).value == {"a": 1}
    assert "not a JSON object" in asked[1]
    give, asked = helper("no json")
    helped = get_help("x", "do x", give, json_in)
    assert (helped.tries, len(asked)) == (2, 2)
    assert "Category: systemic" in helped.escalation


def test_systemic_trouble_is_escalated_at_once() -> None:
    """One try: the same prompt would fail in the same way."""
    give, asked = helper(AttemptError("cannot do this", finding=Kind.GOAL_MISALIGNED))
    assert get_help("x", "do x", give, str).tries == 1
    assert len(asked) == 1


def test_who_steps_in(tmp_path: Path) -> None:
    """First a workaround, then the replanner with the account, then a person; and the account is kept."""
    give, _ = helper(AttemptError("no", finding=Kind.GOAL_MISALIGNED))
    report = tmp_path / "reports" / "escalations.md"
    first = get_help("x", "do x", give, str, workaround=lambda: "by hand", report=report)
    assert (first.value, first.resort) == ("by hand", Resort.WORKAROUND)
    told: list[str] = []

    def replanner(account: str) -> str | None:
        told.append(account)
        return "a new plan"

    second = get_help("x", "do x", give, str, workaround=lambda: None, replanner=replanner, report=report)
    assert (second.value, second.resort) == ("a new plan", Resort.REPLANNER)
    assert "Next: have the plan revised." in told[0]
    third = get_help("x", "do x", give, str, workaround=lambda: None, replanner=lambda _: None, report=report)
    assert (third.value, third.resort) == (None, Resort.PERSON)
    kept = report.read_text()
    assert [kept.count(f"Next: {words}") for words in ("work around", "have the plan", "a person")] == [1, 1, 1]


def test_a_command_is_a_helper(tmp_path: Path) -> None:
    """The prompt comes on standard input, or in its place; a bad exit is a failure with its words."""
    echo = script(tmp_path / "echo.py", "import sys; print(sys.stdin.read().upper(), *sys.argv[1:])")
    assert Command(words=echo)("hello") == "HELLO\n"
    assert Command(words=[*echo, "<{prompt}>"])("hello") == " <hello>\n"
    fail = script(tmp_path / "fail.py", "import sys; sys.exit('429 too many requests')")
    with pytest.raises(AttemptError, match="429"):
        Command(words=fail)("x")
    where = script(tmp_path / "where.py", "import os; print(os.getcwd(), os.environ.get('MARK'))")
    got = Command(words=where, workdir=tmp_path, environment={**os.environ, "MARK": "m"})("")
    assert got.split() == [str(tmp_path), "m"]


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """Nothing of it stays behind."""
    mark = tmp_path / "pid"
    slow = script(
        tmp_path / "slow.py",
        "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(60)",
    )
    with pytest.raises(TimeUp):
        Command(words=[*slow, str(mark)], seconds=1.0)("x")
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_questions_are_json(tmp_path: Path) -> None:
    """A question and its answer are JSON; a wrong answer is asked again with the correction beside the question."""
    judge = script(
        tmp_path / "judge.py",
        "import json, sys; q = json.load(sys.stdin); print('thinking…'); print(json.dumps({'got': q})) if 'correction' in q else print('hm')",
    )
    answer = ask(judge, {"question": "propose", "task": "task-01"})
    assert answer is not None
    assert answer["got"]["question"] == "propose"
    assert answer["got"]["correction"].startswith("malformed_output")


def test_a_question_nobody_answers(tmp_path: Path) -> None:
    """A program that is not there is not asked three times; no program at all is a mistake."""
    report = tmp_path / "e.md"
    assert ask([str(tmp_path / "gone")], {"question": "review"}, report=report) is None
    assert "failed once: the question 'review'" in report.read_text()
    with pytest.raises(ConfigError):
        ask([], {})


@pytest.mark.parametrize("text", ['{"a": 1}', 'So:\n```json\n{"a": 1}\n```\n', 'x {y}\n{"a": 1}'])
def test_json_is_found(text: str) -> None:
    """All of an answer, what stands in its braces, or its last line."""
    assert json_in(text) == {"a": 1}


@pytest.mark.parametrize("text", ["", "[1]", "{", "}{", json.dumps("x")])
def test_what_is_no_json_object(text: str) -> None:
    """A list, a text or half an object is none."""
    with pytest.raises(AttemptError):
        json_in(text)


def test_small_flaws_are_edited(tmp_path: Path) -> None:
    """Paths and typos are put right in place, without asking anybody."""
    path = tmp_path / "task-01.md"
    path.write_text("Read src/old.py, then wirte it.")
    give, asked = helper("never asked")
    problems = [
        Problem(flaw=Flaw.WRONG_PATH, found="src/old.py", instead="src/new.py"),
        Problem(flaw=Flaw.TYPO, found="wirte", instead="write"),
    ]
    assert mend(path, problems, give).value == "Read src/new.py, then write it."
    assert path.read_text() == "Read src/new.py, then write it."
    assert asked == []
    assert mend(path, [], give).value == path.read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["task-01.md"]


def test_larger_flaws_are_written_anew(tmp_path: Path) -> None:
    """The writer is told what is wrong; its answer must have the sections, or it is told again; else the file stays."""
    path = tmp_path / "task-01.md"
    path.write_text("## Goal\nBuild it.\n")
    problems = problems_in(path.read_text(), ["Goal", "Steps"])
    assert problems == [Problem(flaw=Flaw.MISSING_SECTION, found="Steps")]
    give, asked = helper("## Goal\nBuild it.\n", "## Goal\nBuild it.\n\n## Steps\n1. all of it\n")
    helped = mend(path, problems, give, sections=["Goal", "Steps"])
    assert helped.tries == 2
    assert "missing section: Steps" in asked[0]
    assert "Missing: Steps." in asked[1]
    assert "## Steps" in path.read_text()
    give, _ = helper("")
    before = path.read_text()
    assert mend(path, [Problem(flaw=Flaw.WRONG_KIND, found="sequential")], give, sleep=lambda _: None).value is None
    assert path.read_text() == before


def test_a_small_flaw_that_is_not_there_is_not_edited_blindly(tmp_path: Path) -> None:
    """Where what should be replaced is not found, the writer is asked; a file that is missing is written."""
    path = tmp_path / "new" / "task-02.md"
    give, asked = helper("whole")
    assert mend(path, [Problem(flaw=Flaw.TYPO, found="wirte", instead="write")], give).value == "whole"
    assert len(asked) == 1
    assert path.read_text() == "whole"
    assert problems_in("  \n") == [Problem(flaw=Flaw.EMPTY, found="there is nothing in it")]
