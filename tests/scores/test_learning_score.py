"""`bench.learning` plays a ladder with and without `learn` over a journal, and counts the same tasks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.learning.__main__ import Row, line, main, rows
from bench.worlds.world import NONE, Task, Trial, World

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

GOOD, BAD = Trial(True), Trial(False)


def test_a_world_in_which_only_another_system_helps() -> None:
    """With `learn` the other system is asked at once when the journal has filled, and as many tasks are solved."""
    task = Task(name="t", trials={("small", NONE): (BAD,) * 5, ("large", NONE): (GOOD,) * 5}, solvable=True)
    world = World(name="tiny", about="", tasks=(task,), systems=("small", "large"), shuffled=True)
    found = {(row.kind, row.policy): row for row in rows([world], 80, 1)}
    assert all(row.success == 1 for row in found.values())
    assert found["gave_up", "plain"].attempts == 6
    assert found["test_failure", "plain"].attempts == 3
    assert found["gave_up", "learn"].attempts < 3.5
    assert found["test_failure", "learn"].attempts < 2.5
    assert found["gave_up", "plain"].learned == 0
    assert found["gave_up", "learn"].learned > 0.5


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It prints a line for each world, kind and policy, and says when there are no data."""
    assert main(["--synthetic", "--incidents", "8", "--json"]) == 0
    printed = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [(row["kind"], row["policy"]) for row in printed] == [
        ("test_failure", "plain"), ("test_failure", "learn"), ("gave_up", "plain"), ("gave_up", "learn"),
    ]  # fmt: skip
    assert "success" in line(Row(**printed[0]))
    assert main([str(tmp_path)]) == 2
    assert "set RUNG_WORLDS" in capsys.readouterr().err
