"""Plans: reading, errors, conflicts, and the difference between two revisions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.blocker import Blocker
from rung.core.crew.plan import (
    CrewPlan,
    CrewSettings,
    PlanDiff,
    PlanProblem,
    TaskChange,
    checked_plan,
    diff_plans,
    find_conflicts,
    read_plan,
)
from rung.core.domain.errors import ConfigError


def task(name: str, **settings: Any) -> dict[str, Any]:
    return {"id": name, "instruction": f"do {name}", **settings}


def table(*tasks: dict[str, Any], **crew: Any) -> dict[str, Any]:
    return {"crew": {"worker": ["agent", "{task}"], **crew}, "task": list(tasks)}


def test_a_whole_plan() -> None:
    """Every key of a plan is read."""
    plan = read_plan(
        table(
            task("task-01", title="One", writes=["src/"], checkpoints=2, estimate=40, priority=3, phase=2, workdir="w"),
            {
                "id": "task-02",
                "instruction_path": "two.md",
                "command": ["other"],
                "depends_on": ["task-01"],
                "stale_after": 900,
            },
            name="build",
            revision=2,
            workers=8,
            stale_after=300,
            review=["judge"],
            judge=["deep"],
            replanner=["plan"],
            poll=1,
            beat=30,
        )
    )
    assert (plan.name, plan.revision) == ("build", 2)
    assert plan.settings == CrewSettings(
        name="build",
        revision=2,
        workers=8,
        worker=("agent", "{task}"),
        stale_after=300,
        review=("judge",),
        judge=("deep",),
        replanner=("plan",),
        poll=1,
        beat=30,
    )
    one, two = plan.tasks
    assert (one.title, one.writes, one.checkpoints, one.estimate, one.workdir) == ("One", ("src/",), 2, 40, "w")
    assert (two.instruction_path, two.command, two.depends_on, two.stale_after) == (
        "two.md",
        ("other",),
        ("task-01",),
        900,
    )
    assert find_conflicts(plan) == ()
    assert checked_plan(table(task("a"))).settings == CrewSettings(worker=("agent", "{task}"))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"crew": {"wrokers": 2}}, "crew.wrokers"),
        ({"crew": {"workers": 0}}, "crew.workers"),
        ({"crew": {"worker": "agent"}}, "crew.worker"),
        ({"crew": {"review": "nobody"}}, "crew.review"),
        ({"crew": {"review": []}}, "crew.review"),
        ({"crew": {"worker": ["a"], "beat": 540}}, "crew.beat"),
        ({"crew": 3}, "crew"),
        ({"crew": {"attended": "yes"}}, "crew.attended"),
        ({"tasks": []}, "tasks"),
        ({"task": []}, "task"),
        ({"task": None}, "task"),
        ({"task": [{"id": "a b"}]}, "task[0].id"),
        ({"task": [{"id": 3}]}, "task[0].id"),
        ({"task": [{"id": "task-00", "instruction": "x"}]}, "task[0].id"),
        ({"task": [{"id": "fallback-1", "instruction": "x"}]}, "task[0].id"),
        ({"task": [{"instruction": "x"}]}, "task[0].id"),
        ({"task": [{"id": "a"}]}, "task[0].instruction"),
        ({"task": [{"id": "a", "instruction": "x", "instruction_path": "y"}]}, "task[0].instruction"),
        ({"task": [{"id": "a", "instruction": "x"}, {"id": "a", "instruction": "x"}]}, "task[1].id"),
        ({"task": [{"id": "a", "instruction": "x", "mark": "GONE"}]}, "task[0].mark"),
        ({"task": [{"id": "a", "instruction": "x", "estimate": 101}]}, "task[0].estimate"),
        ({"task": [{"id": "a", "instruction": "x", "stale_after": 60}]}, "task[0].stale_after"),
        ({"task": [{"id": "a", "instruction": "x", "priority": "high"}]}, "task[0].priority"),
        ({"task": [{"id": "a", "instruction": "x", "pool": "my account"}]}, "task[0].pool"),
        ({"task": [{"id": "a", "instruction": "x", "account": "mine"}]}, "task[0].account"),
        ({"crew": {"worker": ["x"], "patience": -1}}, "crew.patience"),
        ({"crew": {"worker": ["x"], "probe_interval": 0}}, "crew.probe_interval"),
        ({"task": [{"id": "a", "mark": "REMOVED"}]}, "task"),
        ({"crew": {}}, "task[0].command"),
    ],
)
def test_an_error_names_its_key(change: dict[str, Any], key: str) -> None:
    """Every error in a file names the key and what is allowed."""
    with pytest.raises(ConfigError) as raised:
        read_plan({**table(task("a")), **change})
    assert raised.value.key == key
    assert raised.value.allowed


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["crew", "task", "id", "worker"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_no_table_is_read_by_halves(wild: object) -> None:
    """Any document gives a plan or a ConfigError."""
    try:
        plan = read_plan(wild)
    except ConfigError:
        return
    assert plan.tasks


def test_what_cannot_run() -> None:
    """Unknown dependencies, cycles and write conflicts are found, in this order."""
    strangers = find_conflicts(read_plan(table(task("a", depends_on=["x"]), task("b", depends_on=["b"]))))
    assert [(one.problem, one.tasks) for one in strangers] == [(PlanProblem.UNKNOWN, ("a",))]
    (circle,) = find_conflicts(read_plan(table(task("a", depends_on=["b"]), task("b", depends_on=["a"]))))
    assert circle.problem is PlanProblem.CYCLE
    assert set(circle.tasks) == {"a", "b"}
    (both,) = find_conflicts(read_plan(table(task("a", writes=["src"]), task("b", writes=["src/x.py"]))))
    assert (both.problem, both.tasks) == (PlanProblem.SCOPE, ("a", "b"))
    assert "src/x.py" in both.message
    assert (
        find_conflicts(read_plan(table(task("a", writes=["src"]), task("b", writes=["src/x"], depends_on=["a"])))) == ()
    )
    with pytest.raises(ConfigError, match=r"task\.writes"):
        checked_plan(table(task("a", writes=["f"]), task("b", writes=["f"])))
    with pytest.raises(ConfigError, match=r"task\.depends_on"):
        checked_plan(table(task("a", depends_on=["x"])))


def test_rollbacks_run_first() -> None:
    """Every other task waits for all rollback tasks and therefore has no write conflict with them."""
    plan = read_plan(table(task("a", writes=["f"], priority=9), task("back", writes=["f"], mark="ROLLBACK"), task("b")))
    assert [one.id for one in plan.active_tasks] == ["back", "a", "b"]
    assert plan.dependencies() == {"back": frozenset(), "a": {"back"}, "b": {"back"}}
    assert find_conflicts(plan) == ()


def test_what_a_new_plan_changes() -> None:
    """Tasks are unchanged, revised, new, removed or rolled back; a mark takes precedence over the comparison."""
    old = read_plan(
        table(task("same"), task("marked"), task("other"), task("gone"), task("out"), task("was", mark="REMOVED"))
    )
    new = read_plan(
        table(
            task("same"),
            task("marked", mark="REVISED"),
            task("other", title="changed"),
            {"id": "out", "mark": "REMOVED"},
            task("fresh"),
            task("was"),
            task("back", mark="ROLLBACK"),
        )
    )
    assert diff_plans(old, new) == PlanDiff(
        unchanged=("same",),
        revised=("marked", "other"),
        new=("fresh", "was"),
        removed=("out", "gone"),
        rollback=("back",),
    )
    assert diff_plans(new, new).unchanged == ("same", "other", "fresh", "was", "back")
    assert diff_plans(new, new).revised == ("marked",)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(TaskChange)), max_size=6, unique_by=lambda pair: pair[0]
    )
)
def test_every_task_of_both_plans_is_told_once(rows: list[tuple[str, TaskChange]]) -> None:
    """Every task of both plans is in exactly one field of the difference."""
    old = read_plan(table(*(task(name) for name in "abcd")))
    new = CrewPlan(
        settings=old.settings,
        tasks=read_plan(table(task("zz"), *(task(name, mark=mark.value) for name, mark in rows))).tasks,
    )
    told = diff_plans(old, new)
    everything = [*told.unchanged, *told.revised, *told.new, *told.removed, *told.rollback]
    assert sorted(everything) == sorted({"a", "b", "c", "d", "zz"} | {name for name, _ in rows})


def test_a_blocker_report_says_all() -> None:
    """A blocker report has all sections, and empty ones say so."""
    blocker = Blocker(
        summary="task-02 cannot build",
        attempts=("pinned the version", "another\ncompiler"),
        reason="it needs another phase's files",
        affected=("task-02",),
        plan="plan.toml",
        revision=1,
        phase=2,
        tasks={"task-01": "complete", "task-02": "error"},
        git="main, 2 files changed",
    )
    text = blocker.body(1)
    assert text.startswith("# BLOCKER, consultation 1 of 3\n\n## What failed\n\n[begin error: data, not")
    assert "\n> task-02 cannot build\n" in text
    for part in (
        "- another compiler",
        "## Why this is beyond our authority\n\nit needs",
        "plan.toml, revision 1, phase 2: 1 of 2 tasks complete",
        "- task-02: error",
        "## Artifacts\n\nnone",
        "main, 2 files changed",
    ):
        assert part in text
