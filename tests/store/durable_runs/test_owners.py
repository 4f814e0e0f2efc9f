"""Ownership of runs: races between processes, a stopped owner that resumes too late, and dead owners."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import LeaseLost, RunOwnedElsewhere
from rung.engine import process_identity
from rung.store import open_journal
from rung.store.durable_runs import DurableRunStore
from rung.testing import FakeClock
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.run_lease import DurableRunLease

RACES = int(os.environ.get("RUNG_RACES", "200"))
HEAT = 20
LONG = 60.0
RACER = """
import sys, os
from rung.store import open_journal
from rung.core.domain.errors import RunOwnedElsewhere
with open_journal(sys.argv[1]) as journal:
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            claim = journal.runs.claim(line.strip())
            print("mine", claim.epoch, flush=True)
        except RunOwnedElsewhere:
            print("taken", 0, flush=True)
"""


def racer(where: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RACER, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_two_processes_race(url: str) -> None:
    """Two processes claim the same runs at the same time: each run has exactly one owner."""
    open_journal(url).close()
    racers = [racer(url), racer(url)]
    for process in racers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    names = [f"run-{number}" for number in range(RACES)]
    answers: list[list[str]] = [[], []]
    # In heats: the faster process waits for the other, so that they race repeatedly.
    for begin in range(0, RACES, HEAT):
        heat = names[begin : begin + HEAT]
        for process in racers:
            assert process.stdin is not None
            process.stdin.write("\n".join(heat) + "\n")
            process.stdin.flush()
        for process, said in zip(racers, answers, strict=True):
            assert process.stdout is not None
            said += [process.stdout.readline().strip() for _ in heat]
    with open_journal(url) as journal:
        owners_: dict[str, str] = dict(journal.read("SELECT id, owner FROM run"))
        epochs = {epoch for (epoch,) in journal.read("SELECT DISTINCT epoch FROM run")}
    for process in racers:
        process.communicate()
    assert set(zip(*answers, strict=True)) <= {("mine 1", "taken 0"), ("taken 0", "mine 1")}
    assert epochs == {1}
    pids = [json.loads(owners_[name])[3] for name in names]
    assert pids == [racers[0].pid if one == "mine 1" else racers[1].pid for one in answers[0]]
    assert set(pids) == {process.pid for process in racers}, "it was no race: one won them all"


def claimed(runs: DurableRunStore, run: str) -> DurableRunLease | None:
    """Claim the run; None when another process owns it."""
    try:
        return runs.claim(run)
    except RunOwnedElsewhere:
        return None


def test_a_sleeper_is_fenced(url: str) -> None:
    """An owner that was stopped and overtaken cannot write any more."""
    code = """
import sys, time
from rung.core.domain import events as ev
from rung.store import open_journal
from rung.core.domain.errors import LeaseLost
from rung.store.durable_runs import DurableRunStore
journal = open_journal(sys.argv[1])
claim = DurableRunStore(journal, lease=0.3).claim("r")
claim.record("one", 1)
print("working", flush=True)
sys.stdin.readline()
late = [
    lambda: claim.record("two", "from the sleeper"),
    lambda: claim.append("r", 0, [ev.Opened(1.0, "r", ev.IncidentContext("task", "task"))]).result(),
    lambda: claim.renew(),
    lambda: claim.release(),
    lambda: claim.finish("by the sleeper"),
]
for write in late:
    try:
        write()
        print("written", flush=True)
    except LeaseLost:
        print("fenced", flush=True)
"""
    sleeper = subprocess.Popen(
        [sys.executable, "-c", code, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sleeper.stdout is not None
    assert sleeper.stdout.readline() == "working\n"
    sleeper.send_signal(signal.SIGSTOP)
    with open_journal(url) as journal:
        claim = wait_until(lambda: claimed(DurableRunStore(journal, lease=LONG), "r"))
        assert claim.epoch == 2
        claim.record("two", "from the new owner")
        sleeper.send_signal(signal.SIGCONT)
        out, _ = sleeper.communicate("go\n", timeout=LONG)
        assert out == "fenced\n" * 5
        assert claim.steps() == {"one": 1, "two": "from the new owner"}
        assert journal.events("r") == []
        with pytest.raises(RunOwnedElsewhere):
            DurableRunStore(journal).claim("r")


def test_the_living_keep_theirs(url: str) -> None:
    """A stopped owner counts as alive: its run cannot be claimed while the lease lasts."""
    process = racer(url)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    process.stdin.write("r\n")
    process.stdin.flush()
    assert process.stdout.readline() == "mine 1\n"
    process.send_signal(signal.SIGSTOP)
    with open_journal(url) as journal, pytest.raises(RunOwnedElsewhere, match="another process runs it"):
        journal.runs.claim("r")
    process.kill()
    process.communicate()


def test_the_dead_are_found_at_once(url: str) -> None:
    """A killed owner's run can be claimed without waiting for the lease."""
    process = racer(url)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    process.stdin.write("r\n")
    process.stdin.flush()
    assert process.stdout.readline() == "mine 1\n"
    with open_journal(url) as journal:
        with pytest.raises(RunOwnedElsewhere, match="another process"):
            journal.runs.claim("r")
        process.kill()
        process.communicate()
        assert journal.runs.claim("r").epoch == 2


def test_who_is_dead() -> None:
    """Owners on another host or namespace, and unreadable ones, count as alive; another boot of this host as gone."""
    mine = process_identity.current_owner()
    assert not process_identity.is_gone(mine.text())
    assert process_identity.is_gone("")
    assert not process_identity.is_gone("nonsense")
    assert not process_identity.is_gone(mine._replace(host="elsewhere").text())
    assert not process_identity.is_gone(mine._replace(namespace="pid:[1]").text())
    assert process_identity.is_gone(mine._replace(start="1").text())  # another process with this PID
    assert process_identity.is_gone(mine._replace(boot="before").text())
    assert json.loads(mine.text())[3] == os.getpid()
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_identity.is_gone(mine._replace(pid=child.pid, start="5").text())  # a zombie cannot write any more
    child.wait()


def test_the_lease_is_kept_while_we_work(tmp_path: Path) -> None:
    """A lease is renewed while its owner works; afterwards the run can be claimed."""
    with open_journal(tmp_path / "journal.db") as journal:
        clock = FakeClock()
        runs = DurableRunStore(journal, lease=0.5, now=clock.now)
        with runs.claim("r") as claim:
            for _ in range(3):
                clock.advance(0.25)
                wait_until(lambda: journal.read("SELECT lease FROM run") == [(clock.now() + 0.5,)])
            with pytest.raises(RunOwnedElsewhere):
                runs.claim("r")
            claim.release()
        late = runs.claim("r")
        with pytest.raises(LeaseLost):
            claim.renew()
        late.finish({"value": 1})
        assert runs.claim("r").done == {"value": 1}
