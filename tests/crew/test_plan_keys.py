"""Keys of a plan, each in a crew of real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
