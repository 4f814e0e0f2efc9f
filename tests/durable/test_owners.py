"""One owner at a time: races between processes, a sleeper that wakes too late, and telling the dead from the living."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rung.store import open_journal, owners
from rung.store.port import Fenced, Taken
from rung.store.runs import Runs

if TYPE_CHECKING:
    from pathlib import Path

RACES = int(os.environ.get("RUNG_RACES", "300"))
RACER = """
import sys, os
from rung.store import open_journal
from rung.store.port import Taken
with open_journal(sys.argv[1]) as journal:
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            claim = journal.runs.claim(line.strip())
            print("mine", claim.epoch, flush=True)
        except Taken:
            print("taken", 0, flush=True)
"""


def racer(where: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RACER, str(where)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_two_processes_race(tmp_path: Path) -> None:
    """Two processes claim the same runs at the same time: each run has exactly one owner."""
    where = tmp_path / "journal.db"
    open_journal(where).close()
    racers = [racer(where), racer(where)]
    for process in racers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    names = [f"run-{number}" for number in range(RACES)]
    for process in racers:
        assert process.stdin is not None
        process.stdin.write("\n".join(names) + "\n")
        process.stdin.flush()
    answers = []
    for process in racers:
        assert process.stdout is not None
        answers.append([process.stdout.readline().split()[0] for _ in names])
    for process in racers:
        process.communicate()
    assert set(zip(*answers, strict=True)) <= {("mine", "taken"), ("taken", "mine")}


def test_a_sleeper_is_fenced(tmp_path: Path) -> None:
    """Stopped, overtaken, woken: what it writes then is refused, and it ends."""
    where = tmp_path / "journal.db"
    code = """
import sys, time
from rung.store import open_journal
from rung.store.port import Fenced
from rung.store.runs import Runs
journal = open_journal(sys.argv[1])
claim = Runs(journal, lease=0.3).claim("r")
claim.record("one", 1)
print("working", flush=True)
sys.stdin.readline()
try:
    claim.record("two", "from the sleeper")
except Fenced:
    print("fenced", flush=True)
"""
    sleeper = subprocess.Popen(
        [sys.executable, "-c", code, str(where)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sleeper.stdout is not None
    assert sleeper.stdout.readline() == "working\n"
    sleeper.send_signal(signal.SIGSTOP)
    with open_journal(where) as journal:
        runs = Runs(journal, lease=0.3)
        with pytest.raises(Taken):  # alive as far as anybody can tell, and its lease lasts
            runs.claim("r")
        time.sleep(0.35)
        claim = runs.claim("r")
        assert claim.epoch == 2
        claim.record("two", "from the new owner")
        sleeper.send_signal(signal.SIGCONT)
        out, _ = sleeper.communicate("go\n", timeout=20)
        assert out == "fenced\n"
        assert claim.steps() == {"one": 1, "two": "from the new owner"}


def test_the_dead_are_found_at_once(tmp_path: Path) -> None:
    """A killed owner's run is taken over without waiting for its lease."""
    where = tmp_path / "journal.db"
    process = racer(where)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    process.stdin.write("r\n")
    process.stdin.flush()
    assert process.stdout.readline() == "mine 1\n"
    with open_journal(where) as journal:
        with pytest.raises(Taken, match="another process"):
            journal.runs.claim("r")
        process.kill()
        process.communicate()
        assert journal.runs.claim("r").epoch == 2


def test_who_is_dead() -> None:
    """Another host, another namespace and what cannot be read are not judged; another boot of this host is gone."""
    mine = owners.me()
    assert not owners.dead(mine.text())
    assert owners.dead("")
    assert not owners.dead("nonsense")
    assert not owners.dead(mine._replace(host="elsewhere").text())
    assert not owners.dead(mine._replace(namespace="pid:[1]").text())
    assert owners.dead(mine._replace(start="1").text())  # another process with its number
    assert owners.dead(mine._replace(boot="before").text())
    assert json.loads(mine.text())[3] == os.getpid()
    child = subprocess.Popen(["true"])
    time.sleep(0.2)
    assert owners.dead(mine._replace(pid=child.pid, start="5").text())  # a zombie writes nothing any more
    child.wait()


def test_the_lease_is_kept_while_we_work(tmp_path: Path) -> None:
    """Working longer than the lease lasts, nobody takes it over; afterwards it can be had."""
    with open_journal(tmp_path / "journal.db") as journal:
        runs = Runs(journal, lease=0.2)
        with runs.claim("r") as claim:
            time.sleep(0.5)
            with pytest.raises(Taken):
                runs.claim("r")
            claim.release()
        late = runs.claim("r")
        with pytest.raises(Fenced):
            claim.renew()
        late.finish({"value": 1})
        assert runs.claim("r").done == {"value": 1}
