"""Changes to a pipeline's partition: one owner for each contested file, and nothing that cannot run."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.domain.errors import ConfigError
from rung.core.pipeline.partition import apply_changes, changes_to_json, divide_by_rules, repartition, scope_of
from rung.core.pipeline.spec import Pipeline, read_pipeline


def made(*stages: dict[str, Any]) -> Pipeline:
    rows = [{"prompt": f"do {stage['id']}", "command": ["agent"], **stage} for stage in stages]
    return read_pipeline({"stage": rows})


CONFLICT = "FAIL|kind:scope_conflict|files:x.py|with:a"


def test_who_declares_a_file_owns_it() -> None:
    """The declaring stage that runs is the owner; the other one loses the file and waits."""
    pipeline = made({"id": "b"}, {"id": "a", "writes": ["x.py"]})
    changed, note = divide_by_rules(pipeline, "b", CONFLICT, started={"a"}, ended=())
    assert note == "x.py belongs to a alone; b waits for it"
    assert changed.dependencies["b"] == {"a"}
    assert scope_of(changed, "b") == "You own: only what no other stage owns. Do not write what others own: a: x.py."
    assert changed.restructured == (note,)


def test_a_stage_that_has_not_started_waits() -> None:
    """If the other stage has not started, the stage that runs is the owner."""
    pipeline = made({"id": "a", "writes": ["x.py"]}, {"id": "b", "writes": ["y.py"]}, {"id": "c", "depends_on": ["a"]})
    changed, note = divide_by_rules(pipeline, "b", CONFLICT, started=(), ended=())
    assert note == "x.py belongs to b alone; a waits for it"
    assert changed.stage("a").writes == ()
    assert scope_of(changed, "b") == "You own: y.py, x.py. Do not write what others own: none."


def test_a_report_without_facts() -> None:
    """Files that the report mentions are contested, with the stages that run; without any, the first stage goes first."""
    pipeline = made({"id": "a", "writes": ["x.py"]}, {"id": "b", "writes": ["z.py"]})
    _, note = divide_by_rules(pipeline, "b", "somebody changed x.py and z.py", started={"a"}, ended=())
    assert note == "x.py, z.py belong to a alone; b waits for it"
    _, note = divide_by_rules(made({"id": "a"}, {"id": "b"}), "b", "a conflict", started={"a"}, ended=())
    assert note == "the contested work belongs to a alone; b waits for it"


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ([{"id": "a", "prompt": "x"}], "id"),
        ([{"id": "d", "prompt": "x", "depends_on": ["nobody"]}], "depends_on"),
        ([{"id": "b", "depends_on": ["c"]}], "depends_on"),
        ([{"id": "d", "prompt": "x", "colour": 1}], "colour"),
        (["d"], "stages[0]"),
    ],
)
def test_what_cannot_be_is_refused(rows: list[Any], key: str) -> None:
    """A stage that has passed, an unknown stage, a cycle, an unknown key or no table: an error that names it."""
    pipeline = made({"id": "a"}, {"id": "b"}, {"id": "c", "depends_on": ["b"]})
    with pytest.raises(ConfigError, match=key.replace("[", r"\[").replace("]", r"\]")):
        repartition(pipeline, "b", rows, fixed={"a"})


def test_changes_are_kept() -> None:
    """The changes of a partition, as JSON and back on the file's pipeline, make the same pipeline."""
    pipeline = made({"id": "a", "turns": 3}, {"id": "b"}, {"id": "c", "depends_on": ["b"]})
    rows = [{"id": "b", "prompt": "less", "command": ["other"]}, {"id": "d", "prompt": "rest", "depends_on": ["b"]}]
    changed = repartition(pipeline, "b", rows, fixed={"a"})
    assert changed.dependencies["c"] == {"b", "d"}
    assert [stage.id for stage in changed.stages] == ["a", "b", "c", "d"]
    kept = changes_to_json(pipeline, changed)
    assert [row["id"] for row in kept["stages"]] == ["b", "d"]
    assert apply_changes(pipeline, kept) == changed
