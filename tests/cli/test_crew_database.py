"""Without --db, the commands of an operator take the only crew table in the current folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "RUNG_CREW"} | variables
    command = [sys.executable, "-m", "rung", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def make(folder: Path, name: str) -> None:
    with CrewTable.open(str(folder / name), create=True) as table:
        table.add_task(NewTask(task_id="task-01", instruction="do it", title=name))


@pytest.mark.parametrize("words", [("status",), ("board", "--once"), ("learn", "a fact"), ("add", "b", "--body", "x")])
def test_the_only_table_is_used(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The only crew table is used, and named on stderr; other files are not taken for one."""
    make(tmp_path, "plan.db")
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("SQLite format 3" * 20)
    done = run(tmp_path, "crew", *words)
    assert (done.returncode, done.stderr) == (0, "rung: using the crew database plan.db\n")


def test_json_stays_alone_on_stdout(tmp_path: Path) -> None:
    """`--json` prints nothing else on stdout; a table that is named, by option or variable, is not searched for."""
    make(tmp_path, "plan.db")
    make(tmp_path / "..", f"{tmp_path.name}-other.db")
    assert json.loads(run(tmp_path, "crew", "status", "--json").stdout)["tasks"][0]["title"] == "plan.db"
    other = str(tmp_path.with_name(f"{tmp_path.name}-other.db"))
    for done in (
        run(tmp_path, "crew", "status", "--json", "--db", other),
        run(tmp_path, "crew", "status", "--json", RUNG_CREW=other),
    ):
        assert (json.loads(done.stdout)["tasks"][0]["title"], done.stderr) == (f"{tmp_path.name}-other.db", "")


def test_several_tables_are_listed(tmp_path: Path) -> None:
    """Several tables are an error that lists them; without any, or for a worker, the option is missing."""
    assert "--db is missing: crew database" in run(tmp_path, "crew", "status").stderr
    make(tmp_path, "a.db")
    assert "--db is missing" in run(tmp_path, "worker", "messages", "--task", "task-01").stderr
    make(tmp_path, "b.db")
    done = run(tmp_path, "crew", "status")
    assert done.returncode == 2
    assert "rung: --db is missing: there are 2 crew databases here: a.db, b.db\n" in done.stderr
