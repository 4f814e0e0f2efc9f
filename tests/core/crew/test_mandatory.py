"""Mandatory items of a plan: which ones bind a task, and which texts would change one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.error_triage import FixProposal
from rung.core.crew.mandatory import mandatory_items, named_change, proposed_change
from rung.core.crew.plan import checked_plan


def plan_with(*tasks: dict[str, Any], mandatory: list[str]) -> Any:
    return checked_plan(
        {"crew": {"worker": ["a"], "mandatory": mandatory}, "task": [{"instruction": "x", **task} for task in tasks]}
    )


def test_which_items_bind_a_task() -> None:
    """The plan's list, mandatory tasks and what they write; a task's own writes are its work."""
    plan = plan_with(
        {"id": "task-01", "mandatory": True, "writes": ["api/"]},
        {"id": "task-02", "writes": ["docs/schema.md"], "depends_on": ["task-01"]},
        {"id": "task-03"},
        mandatory=["docs/schema.md", "the public API"],
    )
    assert mandatory_items(plan, "task-01") == ("docs/schema.md", "the public API", "task-01")
    assert mandatory_items(plan, "task-02") == ("the public API", "task-01", "api/")
    assert mandatory_items(plan, "task-03") == ("docs/schema.md", "the public API", "task-01", "api/")
    assert mandatory_items(None, "task-03") == ()


ITEMS = ("docs/schema.md", "api/", "the public API", "task-01", "src/core/**")


@pytest.mark.parametrize(
    ("report", "item"),
    [
        ("this requires changing docs/schema.md", "docs/schema.md"),
        ("docs/schema.md must be changed first", "docs/schema.md"),
        ("It cannot be fixed without editing ./docs/schema.md.", "docs/schema.md"),
        ("I would have to modify /home/me/project/docs/schema.md", "docs/schema.md"),
        ("the fix needs an update of api/routes.py", "api/"),
        ("we have to rename a function of the public\n  API", "the public API"),
        ("this can only be fixed by changing docs/schema.md", "docs/schema.md"),
        ("task-01 needs to be revised", "task-01"),
        ("src/core/io/reader.py has to be rewritten", "src/core/**"),
        ("modifications of api/v1.py are required", "api/"),
        ("I may not change docs/schema.md, but the column is missing there", "docs/schema.md"),
        ('File "api/routes.py", line 3, in read\nKeyError: 3', ""),
        ("FAILED api/test_routes.py::test_x - assert 1 == 2", ""),
        ("docs/schema.md not found", ""),
        ("the parser requires docs/schema.md", ""),
        ("docs/schema.md.orig must be changed", ""),
        ("must change docs/schemas.md", ""),
        ("task-011 must be removed", ""),
        ("the test must be changed; see docs/schema.md", ""),
        ("it can be fixed without changing docs/schema.md", ""),
        ("the fix does not need to change api/routes.py", ""),
        ("ImportError: cannot import name x from api.routes", ""),
        ("", ""),
    ],
)
def test_an_error_that_a_mandatory_item_must_change(report: str, item: str) -> None:
    """An error names the change that it needs; a file that it only mentions is no change."""
    assert named_change(report, ITEMS) == item


@pytest.mark.parametrize(
    ("fix", "item"),
    [
        ("Edit docs/schema.md: add the column.", "docs/schema.md"),
        ("In api/routes.py, replace GET by POST.", "api/"),
        ("Add a parameter to the public API", "the public API"),
        ("Remove task-01 from the list", "task-01"),
        ("Change the call in src/app.py. Do not change docs/schema.md.", ""),
        ("Leave docs/schema.md as it is; change the test", ""),
        ("Read docs/schema.md, then fix the name in src/app.py", ""),
        ("Change src/app.py so that it follows the schema", ""),
        ("Instead of changing docs/schema.md, correct the query", ""),
    ],
)
def test_a_fix_that_would_change_a_mandatory_item(fix: str, item: str) -> None:
    """A fix that changes a mandatory item is found; one that reads or keeps it is not."""
    assert proposed_change(FixProposal(root_cause="edit docs/schema.md", fix=fix), ITEMS) == item


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_any_text_is_read(text: str, items: list[str]) -> None:
    """No text and no item stops the reader."""
    assert named_change(text, tuple(items)) in ("", *items)
