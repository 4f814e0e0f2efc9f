"""What `rung crew run` prints while a crew runs: one line for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.cli.crew.follow import _print_changes
from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_completed_task_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task that is complete is not printed again when its outcome is recorded; another note is printed."""
    seen: dict[str, tuple[str, str]] = {}
    with CrewTable.open(str(tmp_path / "crew.db"), create=True) as table:
        table.add_task(NewTask(task_id="task-01", instruction="do it"))
        claim = table.claim("task-01", "a-session", "worker-one")
        table.request_review(claim, "done", checkpoint=1)
        table.reply(table.require_task("task-01"), TaskState.REVIEW_APPROVED, "", MessageType.APPROVAL)
        table.complete(claim)
        _print_changes(table, seen, as_json=False)
        table.update_columns("task-01", outcome="complete")
        _print_changes(table, seen, as_json=False)
        lines = capsys.readouterr().err.splitlines()
        assert [line.split() for line in lines] == [["task-01", "complete", "worker-one"]]
        table.update_columns("task-01", note="after all")
        _print_changes(table, seen, as_json=False)
        assert capsys.readouterr().err.split() == ["task-01", "complete", "worker-one", "after", "all"]
