"""Runs of helper commands in threads: how many at once, one for each task, and their end. Real processes."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from rung.crew.helper_runs import HelperRun, HelperRuns, RunningHelper
from rung.engine.process_identity import is_alive, lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Notes its process under its argument, and ends when there is a file of that name with `.end`.
SCRIPT = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
mine = pathlib.Path(sys.argv[1])
mine.write_text(str(os.getpid()))
while not mine.with_suffix(".end").exists():
    time.sleep(0.02)
print(sys.stdin.read())
"""


@pytest.fixture
def runs() -> Iterator[HelperRuns]:
    made = HelperRuns(2)
    yield made
    made.end_all()


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def started(runs: HelperRuns, place: Path, task: str) -> RunningHelper:
    command = (sys.executable, "-c", SCRIPT, str(place))
    return runs.start(task, HelperRun(command=command, prompt=f"about {task}", seconds=60.0))


def test_a_few_run_at_once(runs: HelperRuns, tmp_path: Path) -> None:
    """A third run waits until one of the two before has ended, and the waiting conductor is woken by each end."""
    places = [tmp_path / name for name in ("a", "b", "c")]
    helpers = [started(runs, place, place.name) for place in places]
    until(lambda: places[0].exists() and places[1].exists())
    assert not places[2].exists()
    places[0].with_suffix(".end").touch()
    runs.wait(60)
    until(places[2].exists)
    assert helpers[0].output.strip() == "about a"
    assert [helper.done.is_set() for helper in helpers] == [True, False, False]


def test_a_task_has_one_run_at_a_time(runs: HelperRuns, tmp_path: Path) -> None:
    """The second run of a task waits for the first; another task does not wait for either."""
    places = [tmp_path / name for name in ("first", "second", "other")]
    for place, task in zip(places, ("a", "a", "b"), strict=True):
        started(runs, place, task)
    until(lambda: places[0].exists() and places[2].exists())
    assert not places[1].exists()
    places[0].with_suffix(".end").touch()
    until(places[1].exists)


def test_a_cancelled_run_is_ended_whatever_it_ignores(runs: HelperRuns, tmp_path: Path) -> None:
    """A run that is no longer wanted ends with its process, even one that ignores SIGTERM; a waiting one never starts."""
    places = [tmp_path / name for name in ("running", "waiting")]
    running, waiting = (started(runs, place, "a") for place in places)
    until(lambda: places[0].exists() and places[0].read_text())
    process = lookup(int(places[0].read_text()))
    assert process is not None
    waiting.cancel()
    running.cancel()
    until(running.done.is_set)
    assert not is_alive(process)
    assert (running.output, running.error) == ("", None)
    runs.end_all()
    assert not places[1].exists()


def test_all_are_ended_together(runs: HelperRuns, tmp_path: Path) -> None:
    """`end_all` ends every run before it returns."""
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        started(runs, place, place.name)
    until(lambda: all(place.exists() and place.read_text() for place in places))
    processes = [lookup(int(place.read_text())) for place in places]
    runs.end_all(60)
    assert not any(process is not None and is_alive(process) for process in processes)
