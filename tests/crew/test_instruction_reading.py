"""Instructions in a crew: read once, mended in a copy, and read again when their owner changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType
from rung.crew.instruction_reading import MAX_PATHS, instruction_problem, nearby_paths
from tests.crew.simulated import World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with one task, whose instruction file names a misspelled path."""
    made = World(tmp_path, 0, stormy=False, tasks=1)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "parser.py").touch()
    (tmp_path / "one.md").write_text("Read src/parsre.py")
    made.table.update_columns("task-01", instruction_path=str(tmp_path / "one.md"), workdir=str(tmp_path))
    return made


def given(world: World) -> list[str]:
    return [one.message for one in world.table.messages("task-01", types=(MessageType.INSTRUCTION,))]


def test_a_text_is_read_once(world: World) -> None:
    """The second reading changes nothing: one copy, one message."""
    for _ in range(2):
        assert instruction_problem(world.conductor.crew, world.table.require_task("task-01")) == ""
    copy = world.conductor.crew.runtime_dir / "instructions" / "task-01.md"
    assert (world.table.require_task("task-01").instruction_path, copy.read_text()) == (str(copy), "Read src/parser.py")
    assert len(given(world)) == 2
    assert "path src/parsre.py → src/parser.py" in given(world)[-1]


def test_an_original_that_its_owner_changed_is_used_again(world: World) -> None:
    """The copy stands in for the text it was made from, and for no later one."""
    crew = world.conductor.crew
    instruction_problem(crew, world.table.require_task("task-01"))
    original = world.place / "one.md"
    original.write_text("Write the parser anew.")
    assert instruction_problem(crew, world.table.require_task("task-01")) == ""
    assert world.table.require_task("task-01").instruction_path == str(original)
    assert str(original) in given(world)[-1]


def test_a_huge_folder_is_not_compared(tmp_path: Path) -> None:
    """Folders of tools are left out, and a folder with too many files gives no paths."""
    for name in ("a.py", ".git/config", "node_modules/x.js", "src/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(nearby_paths(tmp_path)) == ["a.py", "src", "src/b.py"]
    for number in range(MAX_PATHS + 1):
        (tmp_path / "src" / str(number)).touch()
    assert nearby_paths(tmp_path) == []
