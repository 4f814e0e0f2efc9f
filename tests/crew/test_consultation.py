"""Consultations of the replanner: refused plans, the pause, and one at a time. Real commands, simulated time."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.crew.conductor import Conductor
from rung.crew.judgement import CommandJudgement
from rung.crew.plan_sync import PLAN_KEY
from tests.crew.simulated import World
from tests.crew.test_helpers import asked, helper

BEYOND = "this needs an architectural decision"
CREW = {"name": "c", "revision": 2, "worker": [sys.executable]}


def plan(*tasks: dict[str, Any], **crew: Any) -> str:
    rows = [{"instruction": "do it", **task} for task in tasks]
    return json.dumps({"plan": {"crew": {**CREW, **crew}, "task": rows}})


GOOD = plan({"id": "task-01", "mark": "REVISED"}, {"id": "task-02"})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with two tasks, both claimed by the test, whose plan has revision 1."""
    made = World(tmp_path, 0, stormy=False, tasks=2)
    for name in ("task-01", "task-02"):
        made.table.update_columns(name, command=[], depends_on=[])
    rows = [{"id": f"task-0{n}", "instruction": "do it"} for n in (1, 2)]
    made.table.set_fact(PLAN_KEY, json.dumps({"crew": {**CREW, "revision": 1}, "task": rows}))
    return made


def consult(world: World, command: list[str]) -> None:
    """Let task-01 fail, and the conductor act until no handler waits for the replanner."""
    world.conductor.crew.judgement = CommandJudgement(replanner=command)
    world.table.claim("task-02", "s2")
    world.table.report_error(world.table.claim("task-01", "s1"), BEYOND)
    world.conductor.handle_pending()
    until = time.monotonic() + 60
    while world.conductor.suspended:
        assert time.monotonic() < until
        world.conductor.crew.helpers.wait(0.2)
        world.conductor.handle_pending()


def emergencies(world: World, task_id: str) -> list[str]:
    return [one.message for one in world.table.messages(task_id, types=(MessageType.EMERGENCY,))]


@pytest.mark.parametrize(
    ("refused", "word"),
    [
        ("no plan at all", "not a JSON object"),
        ("{}", "no `plan`"),
        ('{"plan": "a plan"}', "content of a plan.toml"),
        (plan({"id": "task-01"}, {"id": "task-02"}, revision=1), "more than 1"),
        (plan({"id": "task-01", "depends_on": ["task-02"]}, {"id": "task-02", "depends_on": ["task-01"]}), "depend on each other"),
        (plan({"id": "task-01", "writes": ["a"]}, {"id": "task-02", "writes": ["a"]}), "both write a"),
        (plan({"id": "task-01", "depends_on": ["nobody"]}), "nobody"),
        (plan({"id": "task-01"}, {"id": "task-01"}), "task-01"),
        (plan({"id": "task-00"}), "reserved"),
        (plan({"id": "a b"}), "letters, digits"),
        (plan({"id": "task-01"}, worker=["/no/such/program"]), "/no/such/program"),
    ],
)  # fmt: skip
def test_a_refused_plan_is_sent_back(world: World, tmp_path: Path, refused: str, word: str) -> None:
    """The replanner is told what is wrong with its plan, and its next one is applied."""
    consult(world, helper(tmp_path, refused, GOOD))
    _, second = asked(tmp_path)
    assert word in second["correction"]
    assert world.table.require_task("task-01").plan_mark == "REVISED"
    assert world.table.require_task("task-01").state is TaskState.WATCHING
    saved = tmp_path / "runtime" / "refused-plan-r1.json"
    assert saved.exists() == ("crew" in refused)
    if saved.exists():
        assert word in json.loads(saved.read_text())["wrong"]


def test_three_refused_plans_leave_the_old_one(world: World, tmp_path: Path) -> None:
    """After three refused plans the old one stays, a person is asked, and the report names that."""
    before = world.table.get_fact(PLAN_KEY)
    consult(world, helper(tmp_path, plan({"id": "a b"}), plan({"id": "c d"}), plan({"id": "e f"}), GOOD))
    assert len(asked(tmp_path)) == 3
    assert world.table.get_fact(PLAN_KEY) == before
    assert world.table.require_task("task-01").outcome == "escalated"
    report = (tmp_path / "runtime" / "escalations" / "helpers.md").read_text()
    assert "The question 'replan' about task-01" in report
    assert "Next: a person decides" in report


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (GOOD, "RESUME: the plan was changed (revision 2)"),
        ('{"plan": null}', "RESUME: the plan stays as it is"),
        ("!401 invalid api key", "RESUME: the plan stays as it is"),
    ],
)
def test_whoever_was_told_to_pause_is_told_the_result(world: World, tmp_path: Path, answer: str, result: str) -> None:
    """The worker of another task gets PAUSE and, whatever the replanner says, RESUME; the pause is over."""
    consult(world, helper(tmp_path, answer))
    first, last = emergencies(world, "task-02")
    assert first.startswith("PAUSE: the plan is being changed")
    assert last == result
    assert world.table.get_fact("paused") == ""
    assert len(asked(tmp_path)) == 1


def test_a_pause_that_nobody_conducts_is_lifted_by_the_next_conductor(world: World, tmp_path: Path) -> None:
    """After a crash, a task that is no longer in error keeps nobody paused, and every worker is told."""
    world.conductor.crew.judgement = CommandJudgement(replanner=helper(tmp_path, GOOD))
    world.table.claim("task-02", "s2")
    claim = world.table.claim("task-01", "s1")
    world.table.report_error(claim, BEYOND)
    world.conductor.handle_pending()
    assert (world.table.get_fact("paused") or "").startswith("task-01: consultation 1")
    world.conductor.crew.helpers.end_all()
    world.conductor = Conductor(world.conductor.crew)  # the former one was killed
    world.table.hand_off(claim, "HANDOFF: enough")
    world.conductor.crew.judgement = CommandJudgement()
    world.conductor.handle_pending()
    assert world.table.get_fact("paused") == ""
    assert [text.split(":")[0] for text in emergencies(world, "task-02")] == ["PAUSE", "RESUME"]


def test_a_stop_lifts_the_pause(world: World, tmp_path: Path) -> None:
    """A conductor that is stopped in a consultation ends the replanner, applies nothing and tells the workers."""
    world.conductor.crew.judgement = CommandJudgement(replanner=[sys.executable, "-c", "import time; time.sleep(60)"])
    world.table.claim("task-02", "s2")
    world.table.report_error(world.table.claim("task-01", "s1"), BEYOND)
    world.conductor.handle_pending()
    world.conductor.close()
    world.conductor.crew.helpers.end_all()
    assert world.table.get_fact("paused") == ""
    assert emergencies(world, "task-02")[-1] == "RESUME: the consultation was broken off"
    assert world.table.require_task("task-01").state is TaskState.ERROR


def test_consultations_follow_one_another(world: World, tmp_path: Path) -> None:
    """While one task is with the replanner, the next one waits for the plan, and is asked about afterwards."""
    world.conductor.crew.judgement = CommandJudgement(
        replanner=helper(tmp_path, plan({"id": "task-01", "mark": "REVISED"}, {"id": "task-02"}), '{"plan": null}')
    )
    for name in ("task-01", "task-02"):
        world.table.report_error(world.table.claim(name, f"s-{name}"), BEYOND)
    world.conductor.handle_pending()
    assert len(world.conductor.suspended) == 2
    until = time.monotonic() + 60
    while world.conductor.suspended:
        assert time.monotonic() < until
        world.conductor.crew.helpers.wait(0.2)
        world.conductor.handle_pending()
    assert [question["task"] for question in asked(tmp_path)] == ["task-01", "task-02"]
    assert "revision 2" in asked(tmp_path)[1]["blocker"]
    assert world.table.require_task("task-02").outcome == "escalated"


def test_each_blocked_task_keeps_its_own_report(world: World) -> None:
    """A later consultation does not overwrite the report to which an earlier escalation refers."""
    for name, what in (("task-01", "the parser"), ("task-02", "the printer")):
        world.table.report_error(world.table.claim(name, f"s-{name}"), f"{what}: {BEYOND}")
        world.conductor.handle_pending()
    for name, what in (("task-01", "the parser"), ("task-02", "the printer")):
        report = world.place / "runtime" / f"blocker-report-r1-{name}.md"
        assert f"{what}: {BEYOND}" in report.read_text()
        assert report.name in world.table.require_task(name).note


def test_a_worker_may_leave_while_the_replanner_works(world: World, tmp_path: Path) -> None:
    """A worker that exits after its last error does not break the consultation off: the new plan is applied."""
    gate = tmp_path / "gate"
    script = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.02)\nprint({GOOD!r})"
    world.conductor.crew.judgement = CommandJudgement(replanner=[sys.executable, "-c", script])
    claim = world.table.claim("task-01", "s1")
    world.table.report_error(claim, BEYOND)
    world.conductor.handle_pending()
    world.table.hand_off(claim, "HANDOFF: five tries are spent")
    world.conductor.handle_pending()
    gate.touch()
    until = time.monotonic() + 60
    while world.conductor.suspended:
        assert time.monotonic() < until
        world.conductor.crew.helpers.wait(0.2)
        world.conductor.handle_pending()
    row = world.table.require_task("task-01")
    assert (row.state, row.plan_mark, row.redispatches) == (TaskState.WATCHING, "REVISED", 0)


def test_the_replanner_gets_the_plan_that_it_changes(world: World, tmp_path: Path) -> None:
    """The question has the current plan as the answer needs it, its revision, every task's state, and the plan's file."""
    consult(world, helper(tmp_path, GOOD))
    (question,) = asked(tmp_path)
    assert question["revision"] == 1
    assert question["plan"]["crew"]["revision"] == 1
    assert [task["id"] for task in question["plan"]["task"]] == ["task-01", "task-02"]
    assert question["tasks"] == {"task-01": "error", "task-02": "working"}
    saved = json.loads(Path(question["plan_file"]).read_text())
    assert saved == {name: question[name] for name in ("revision", "plan", "tasks")}


def test_a_long_plan_is_given_as_a_file(world: World, tmp_path: Path) -> None:
    """A plan beyond the size of a question is whole in the file that the question names, and never cut."""
    stored = json.loads(world.table.get_fact(PLAN_KEY) or "")
    stored["task"][1]["instruction"] = "word " * 20_000
    world.table.set_fact(PLAN_KEY, json.dumps(stored))
    consult(world, helper(tmp_path, GOOD))
    (question,) = asked(tmp_path)
    assert "plan" not in question
    assert question["revision"] == 1
    assert json.loads(Path(question["plan_file"]).read_text())["plan"] == stored


def test_long_reports_of_errors_are_shortened_for_the_replanner(world: World, tmp_path: Path) -> None:
    """A blocker report has a bounded size, whatever a worker has written."""
    world.conductor.crew.judgement = CommandJudgement(replanner=helper(tmp_path, GOOD))
    world.table.report_error(world.table.claim("task-01", "s1"), f"{'log ' * 15_000}\n{BEYOND}")
    world.conductor.handle_pending()
    report = (tmp_path / "runtime" / "blocker-report-r1-task-01.md").read_text()
    assert BEYOND in report
    assert len(report) < 20_000
    world.conductor.crew.helpers.end_all()
