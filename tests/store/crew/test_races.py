"""Sixteen real processes want the same task: exactly one gets it, and fifteen say that they did not."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.connection import SqliteCrewConnection
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from subprocess import Popen

ROOT = Path(__file__).resolve().parents[3]
RACERS = 16
ROUNDS = int(os.environ.get("RUNG_RACES", "6"))


def racing(place: str, number: int) -> Popen[str]:
    command = [sys.executable, "-m", "tests.store.crew.racer", place, f"s{number}"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def said(racer: Popen[str]) -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().strip()


@contextmanager
def race(place: str) -> Iterator[Callable[[str], list[str]]]:
    """Sixteen of them, ready; all are told the same at once, and what each answers is given back."""
    with ExitStack() as stack:
        racers = [stack.enter_context(racing(place, number)) for number in range(RACERS)]
        assert [said(racer) for racer in racers] == ["ready"] * RACERS

        def told(line: str) -> list[str]:
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{line}\n")
            return [said(racer) for racer in racers]

        yield told
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.close()


def test_of_sixteen_one_gets_it(table: CrewTable, place: str) -> None:
    """Round after round: first what nobody had yet, then what was opened again."""
    with race(place) as told:
        for number in range(ROUNDS):
            task = f"task-{number // 2 + 1:02}"
            if number % 2 == 0:
                table.add_task(NewTask(task_id=task, instruction="do it"))
            else:
                table.reply(table.require_task(task), TaskState.EXITED, "", MessageType.SYSTEM)
                table.reply(table.require_task(task), TaskState.FIX_PROPOSED, "", MessageType.SYSTEM)
            _one_won(table, task, told(task))
        _all_different(table, told)


def _all_different(table: CrewTable, told: Callable[[str], list[str]]) -> None:
    """Whoever takes the next that is free gets another than all others, and is not blocked when somebody was quicker."""
    names = [f"task-9{number:02}" for number in range(RACERS - 1)]
    for name in names:
        table.add_task(NewTask(task_id=name, instruction="do it"))
    assert sorted(told("next")) == ["nothing", *names]
    assert not table.fallbacks()


def _one_won(table: CrewTable, task: str, answers: list[str]) -> None:
    found = table.require_task(task)
    winners = [number for number, answer in enumerate(answers) if answer != "blocked"]
    assert len(winners) == 1, answers
    assert answers[winners[0]] == f"won {found.generation}"
    assert (found.state, found.session_id) == (TaskState.WORKING, f"s{winners[0]}")
    losers = {f"s{number}" for number in range(RACERS)} - {found.session_id}
    assert {row.session_id for row in table.fallbacks()} == losers
    last = table.messages(task, types=[MessageType.CLAIM_BLOCKED])[-len(losers) :]
    assert {message.from_session for message in last} == losers
    for session in losers:
        table.delete_fallback(session)


def test_the_table_is_made_once_by_whoever_comes_first(place: str) -> None:
    """Several at once find one table, with one row for the conductor."""
    code = "import sys; from rung.store.crew.table import CrewTable; CrewTable.open(sys.argv[1], create=True).close()"
    made = [subprocess.Popen([sys.executable, "-c", code, place]) for _ in range(6)]
    assert [process.wait() for process in made] == [0] * 6
    with CrewTable.open(place) as table:
        assert table.connection.execute("SELECT count(*) FROM orchestration_tasks") == [(2,)]


@pytest.mark.parametrize("standard", [False, True], ids=["apsw", "sqlite3"])
@pytest.mark.parametrize("after", range(6))
def test_a_table_made_while_it_is_opened_is_recognised(tmp_path: Path, after: int, *, standard: bool) -> None:
    """Somebody else may create the table between any two statements of the opening."""
    place = str(tmp_path / "crew.db")

    class Overtaken(SqliteCrewConnection):
        statements = 0

        def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            if self.statements == after:
                self.statements += 1
                CrewTable.open(place, create=True).close()
            self.statements += 1
            return super()._execute(sql, values)

    table = Overtaken(place, create=True, clock=None, use_stdlib=standard)
    assert table.execute("SELECT count(*) FROM orchestration_tasks") == [(2,)]
    table.close()
