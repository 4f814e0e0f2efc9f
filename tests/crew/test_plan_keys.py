"""Keys of a plan, each in a crew of real processes."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.crew.contract import MessageType, TaskState
from tests.crew.test_conducted import RUNG, place

if TYPE_CHECKING:
    from tests.crew.test_conducted import Place

__all__ = ["place"]  # the fixture
pytestmark = pytest.mark.usefixtures("measured_processes")
WORKER = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--"]


def test_checkpoints_of_a_command(place: Place) -> None:
    """A command runs once for each checkpoint and once for the rest, and is told which review is next."""
    inputs = place.folder / "inputs"
    place.plan(
        [{"id": "task-01", "checkpoints": 2}], worker=[*WORKER, "sh", "-c", f"cat >>{inputs}; echo ==== >>{inputs}"]
    )
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    first, second, third, rest = inputs.read_text().split("====\n")
    assert (first.strip(), rest) == ("do task-01", "")
    assert "checkpoint 1. Continue.\n1 of 3 reviews are approved" in second
    assert "2 of 3 reviews are approved" in third
    assert "do task-01" in third
    assert len(place.messages("task-01", MessageType.REVIEW_REQUEST)) == 3
    row = place.task("task-01")
    assert (row.state, row.reviews_approved, row.checkpoint) == (TaskState.COMPLETE, 3, 3)


def reviewer(place: Place, body: str) -> list[str]:
    """Return a command that records each question in `asked` and runs this code; `asked` is the question."""
    file = place.folder / "reviewer.py"
    file.write_text(
        "import json, pathlib, sys\n"
        "asked = json.load(sys.stdin)\n"
        f"log = pathlib.Path({str(place.folder / 'asked')!r})\n"
        "before = log.read_text().splitlines() if log.exists() else []\n"
        "log.write_text('\\n'.join([*before, json.dumps(asked)]))\n" + body
    )
    return [sys.executable, str(file)]


def questions(place: Place) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place.folder / "asked").read_text().splitlines()]


def test_a_reviewer_is_called_for_each_request(place: Place) -> None:
    """The command gets every review request, and its verdict counts: one refused, then each checkpoint approved."""
    place.plan(
        [{"id": "task-01", "title": "It", "checkpoints": 1}],
        worker=[*WORKER, "sh", "-c", "cat >/dev/null; echo done"],
        review=reviewer(place, "print(json.dumps({'approve': len(before) != 0, 'reason': 'use tabs'}))"),
    )
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    assert [(one["question"], one["checkpoint"], one["checkpoints"], one["cycle"]) for one in questions(place)] == [
        ("review", 1, 1, 1),
        ("review", 1, 1, 2),
        ("review", 2, 1, 1),
    ]
    assert questions(place)[0]["rules"]["decision"] == "approve"
    assert "Tests: " in questions(place)[0]["review"]
    (refusal,) = place.messages("task-01", MessageType.REJECTION)
    assert "use tabs" in refusal


@pytest.mark.parametrize("body", ["print('fine by me')", "print(json.dumps({'approve': 'yes'}))", "sys.exit('broken')"])
def test_a_reviewer_without_a_usable_answer_approves_nothing(place: Place, body: str) -> None:
    """A bad answer is asked again with what is wrong; after that nothing is approved, and the task needs a person."""
    place.plan([{"id": "task-01"}], review=reviewer(place, body))
    place.start()
    code, said = place.end()
    assert code == 4, said + place.log()
    assert 2 <= len(questions(place)) <= 3
    assert "correction" in questions(place)[1]
    assert place.messages("task-01", MessageType.APPROVAL) == []
    assert "the reviewer gave no usable answer" in place.task("task-01").note


def _asks_about(place: Place, checkpoint: int) -> bool:
    return place.task("task-01").note.startswith(f"asks: review of checkpoint {checkpoint}")


def test_a_person_reviews_each_checkpoint(place: Place) -> None:
    """`review = "person"`: the task waits for a person at each checkpoint, and completes after the last approval."""
    place.plan([{"id": "task-01", "checkpoints": 1}], review="person")
    place.start()
    place.until_state("task-01", TaskState.NEEDS_REVIEW)
    for number in (1, 2):
        place.until(partial(_asks_about, place, number))
        assert place.say("crew", "reply", "task-01", "--approve", "looks good").returncode == 0
    code, said = place.end()
    assert code == 0, said + place.log()


def judge(place: Place, *texts: str) -> list[str]:
    """Return a judge that writes these instructions in turn."""
    return reviewer(place, f"print(json.dumps({{'instructions': {texts!r}[min(len(before), {len(texts) - 1})]}}))")


def test_small_flaws_of_instructions_are_mended(place: Place) -> None:
    """The worker gets the mended copy and is told what was mended; the original file stays as it was."""
    (place.folder / "src").mkdir()
    (place.folder / "src" / "parser.py").write_text("x = 1\n")
    text = "Fix src/parsre.py, then:\n\n```sql\nUPDATE orchestration_task SET last_hearbeat = datetime('now');\n"
    (place.folder / "one.md").write_text(text)
    inputs = place.folder / "inputs"
    place.plan(
        [
            {"id": "task-01", "instruction_path": "one.md", "workdir": "."},
            {"id": "task-02", "instruction": "Read src/praser.py.", "workdir": "."},
        ],
        worker=[*WORKER, "sh", "-c", f"cat >{inputs}-$RUNG_TASK"],
    )
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    assert (place.folder / "one.md").read_text() == text
    mended = place.runtime / "instructions" / "task-01.md"
    assert place.task("task-01").instruction_path == str(mended)
    right = (
        "Fix src/parser.py, then:\n\n```sql\nUPDATE orchestration_tasks SET last_heartbeat = datetime('now');\n```\n"
    )
    assert mended.read_text() == right
    got = (place.folder / "inputs-task-01").read_text()
    assert right.strip() in got
    for said in ("path src/parsre.py → src/parser.py", "table orchestration_task →", "column last_hearbeat →", "fence"):
        assert said in got
        assert said in place.log()
    got = (place.folder / "inputs-task-02").read_text()
    assert "Read src/parser.py." in got
    assert "Read src/praser.py." not in got


def test_large_flaws_go_back_to_the_writer(place: Place) -> None:
    """The writer is told what is wrong, also with its new text; its usable text is given out."""
    inputs = place.folder / "inputs"
    place.plan(
        [
            {"id": "task-01", "instruction": "# task-02: the lexer\n\nWrite it."},
            {"id": "task-02", "depends_on": ["task-01"]},
        ],
        worker=[*WORKER, "sh", "-c", f"cat >{inputs}-$RUNG_TASK"],
        judge=judge(place, "Task: task-02\n\nWrite it.", "# task-01: the parser\n\nWrite it."),
    )
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    first, second = questions(place)
    assert "instructions for task-02, not for task-01" in first["wrong"]
    assert "instructions for task-02, not for task-01" in second["correction"]
    got = (place.folder / "inputs-task-01").read_text()
    assert "# task-01: the parser" in got
    assert "the lexer" not in got


def test_after_three_bad_texts_the_plan_then_a_person(place: Place) -> None:
    """A writer is asked three times at most, then the replanner, then a person."""
    file = place.folder / "replan.py"
    file.write_text(
        "import json, sys\njson.load(sys.stdin)\nopen(sys.argv[1], 'a').write('x')\nprint('{\"plan\": null}')\n"
    )
    place.plan(
        [{"id": "task-01", "instruction": "Wait until task-02 is complete."}, {"id": "task-02"}],
        judge=judge(place, "Task: task-02", "Wait for task-02 to be complete.", "Task type: sequential", "fine"),
        replanner=[sys.executable, str(file), str(place.folder / "replanned")],
        workers=2,
    )
    place.start()
    code, said = place.end()
    assert code == 3, said + place.log()
    assert len(questions(place)) == 3
    assert place.task("task-01").outcome == "escalated"
    assert "wait for task-02" in place.task("task-01").note
    assert (place.folder / "replanned").read_text() == "x"


def test_a_mandatory_item_goes_to_the_replanner_at_once(place: Place) -> None:
    """An error, or a judge's fix, that would change a mandatory item asks for a new plan and spends no correction."""
    script = place.folder / "work.sh"
    script.write_text(
        "case $RUNG_TASK in task-01) echo 'docs/schema.md must be changed' >&2;; *) echo 'KeyError: 3' >&2;; esac; exit 1\n"
    )
    place.plan(
        [
            {"id": "task-01"},
            {"id": "task-02"},
            {"id": "task-03", "mandatory": True, "writes": ["api/"], "depends_on": ["task-01"]},
        ],
        worker=[*WORKER, "sh", str(script)],
        mandatory=["docs/schema.md"],
        judge=reviewer(place, "print(json.dumps({'root_cause': 'x', 'fix': 'In api/routes.py, replace GET by POST'}))"),
    )
    place.start()
    code, said = place.end()
    assert code == 4, said + place.log()
    for name in ("task-01", "task-02"):
        assert place.messages(name, MessageType.FIX_PROPOSAL) == []
        assert place.task(name).error_tries == 0
    assert place.task("task-01").note.startswith("beyond_authority")
    assert "changes api/, which is mandatory in the plan" in place.task("task-02").note
    assert {one["task"] for one in questions(place)} == {"task-02"}
