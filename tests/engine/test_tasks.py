"""Tasks: functions made of steps, which any process can take up again."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.errors import ConfigError, RungError
from rung.engine import tasks
from rung.store import open_journal
from rung.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.journal import Journal


class Died(BaseException):
    """As if the process were gone."""


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db") as journal:
        yield journal


@pytest.fixture(autouse=True)
def _no_tasks() -> Iterator[None]:
    before = dict(tasks.TASKS)
    tasks.TASKS.clear()
    yield
    tasks.TASKS.clear()
    tasks.TASKS.update(before)


def left_behind(journal: Journal) -> None:
    """Nobody has them any more."""
    journal.write(
        lambda connection: connection.execute("UPDATE run SET owner = '', lease = 0"), lambda _: True
    ).result()


def test_steps_are_done_once(journal: Journal) -> None:
    """Cut off between two steps: taken up again, the first is not done a second time."""
    done: list[str] = []
    deaths = [Died()]

    def act(what: str) -> str:
        done.append(what)
        return what.upper()

    @tasks.task("letters")
    def letters(first: str, second: str) -> list[str]:
        one = tasks.step("one", act, first)
        if deaths:
            raise deaths.pop()
        return [one, tasks.step("two", act, second)]

    with pytest.raises(Died):
        tasks.start(journal, "r", "letters", first="a", second="b")
    left_behind(journal)
    assert tasks.resume(journal) == {"r": ["A", "B"]}
    assert done == ["a", "b"]
    assert tasks.start(journal, "r", "letters", first="a", second="b") == ["A", "B"]
    assert tasks.resume(journal) == {}


def test_a_task_that_fails(journal: Journal) -> None:
    """What it raised is raised, kept as a name, and told to whoever asks later; it does not stop the others."""

    @tasks.task("bad")
    def bad() -> None:
        raise TimeoutError("too slow")

    @tasks.task("good")
    def good() -> int:
        return 7

    journal.runs.submit("a", "bad", {})
    journal.runs.submit("b", "good", {})
    ended = tasks.resume(journal)
    assert isinstance(ended["a"], TimeoutError)
    assert ended["b"] == 7
    with pytest.raises(RungError, match="ended failed: too slow"):
        tasks.start(journal, "a", "bad")


def test_sleep_keeps_its_moment(journal: Journal) -> None:
    """A sleep that was begun before a crash ends when it would have ended."""
    claim = journal.runs.claim("r")
    clock = [100.0]
    work = tasks.Work(claim, lambda _: None, lambda: clock[0])
    work.done["nap"] = 99.0
    begun = time.monotonic()
    work.sleep("nap", 60.0)  # its moment has passed
    work.step("short", lambda: 100.0, ())
    work.sleep("short", 0.0)
    assert time.monotonic() - begun < 1

    def later() -> float:
        clock[0] += 0.01
        return clock[0]

    work._now = later
    work.sleep("new", 0.02)
    assert claim.steps()["new"] == pytest.approx(100.03, abs=0.02)


def test_wait_for_a_word(journal: Journal) -> None:
    """A word from outside is heard, kept, and not waited for again; without one the time is up."""

    @tasks.task("asks")
    def asks() -> Any:
        return [tasks.wait("review", 10.0), tasks.wait("nobody", 0.0)]

    threading.Timer(0.15, lambda: journal.runs.send("r/review", {"ok": True})).start()
    assert tasks.start(journal, "r", "asks") == [{"ok": True}, None]
    journal.runs.send("r/review", {"ok": False})
    work = tasks.Work(journal.runs.claim("s"), lambda _: None)
    work.done["wait.review"] = {"ok": True}
    assert work.wait("review", None) == {"ok": True}
    assert tasks.start(journal, "r", "asks")[0] == {"ok": True}


def test_a_wait_without_end(journal: Journal) -> None:
    """Without a timeout it waits until it is told."""
    told = iter([None, None, "go"])
    work = tasks.Work(journal.runs.claim("r"), lambda _: next(told))
    assert work.wait("x", None) == "go"


def test_three_times_and_no_further(journal: Journal) -> None:
    """A task that kills whoever takes it up is given up."""

    @tasks.task("deadly")
    def deadly() -> None:
        raise Died

    for _ in range(3):
        with pytest.raises(Died):
            tasks.start(journal, "r", "deadly")
        left_behind(journal)
    with pytest.raises(RungError, match="ended partial: it was taken up three times"):
        tasks.start(journal, "r", "deadly")


def test_bad_input(journal: Journal) -> None:
    """Names are texts, belong to one function, and must be known; steps belong into tasks; arguments are JSON."""
    with pytest.raises(ConfigError, match="a text"):
        tasks.task("")
    tasks.task("one")(len)
    tasks.task("one")(len)
    with pytest.raises(ConfigError, match="no other task"):
        tasks.task("one")(max)
    with pytest.raises(ConfigError, match="a registered task: one"):
        tasks.start(journal, "r", "two")
    tasks.TASKS.clear()
    with pytest.raises(ConfigError, match="there is none"):
        tasks.start(journal, "r", "two")
    for call in (lambda: tasks.step("a", len), lambda: tasks.sleep("a", 1), lambda: tasks.wait("a")):
        with pytest.raises(RungError, match="inside a task"):
            call()
    tasks.task("one")(len)
    with pytest.raises(TypeError, match="must be JSON"):
        tasks.start(journal, "r", "one", x=object())


def test_what_is_open(journal: Journal) -> None:
    """Runs that have not ended are told, and whether somebody has them."""
    assert journal.runs.submit("a", "one", {"x": 1})
    assert not journal.runs.submit("a", "one", {"x": 2})
    journal.runs.claim("b")
    found = {run.id: (run.task, run.arguments, run.owned) for run in Runs(journal).open_runs()}
    assert found == {"a": ("one", {"x": 1}, False), "b": ("", None, True)}
    assert tasks.resume(journal) == {}
