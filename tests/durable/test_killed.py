"""Killed at random points, again and again: nothing is lost, nothing that ended is made again, every run ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from rung.core.incident import Incident
from rung.store import open_journal

WORKER = Path(__file__).with_name("worker.py")
KILLS = int(os.environ.get("RUNG_KILLS", "25"))
RUNS = 2 * KILLS


def worker(where: str, side: Path, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(WORKER), where, str(side), str(RUNS), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed_until_done(where: str, side: Path, seed: int, kills: int) -> int:
    """Start it, kill it after a random while, and so on; then let it end. How often it was hit at work."""
    chance = random.Random(seed)
    hit = 0
    for _ in range(kills):
        process = worker(where, side, seed)
        time.sleep(0.2 + chance.random() * 0.25)
        if process.poll() is None:
            hit += 1
            process.send_signal(signal.SIGKILL)
        process.communicate()
    for _ in range(6):
        process = worker(where, side, seed)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()
        assert b"all done" in out
    return hit


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_minus_nine(tmp_path: Path, seed: int) -> None:
    """What the side file saw and what the journal holds agree, run by run."""
    where, side = str(tmp_path / "journal.db"), tmp_path / "side.txt"
    hit = killed_until_done(where, side, seed, KILLS)
    assert hit >= KILLS * 0.8, "killed after its work: give it more"
    check(where, side)


def check(where: str, side: Path) -> None:
    lines = side.read_text().splitlines()
    begun = Counter(line.split()[0] for line in lines if line.endswith(" begun"))
    with open_journal(where) as journal:
        states: dict[str, str] = dict(journal.read("SELECT id, state FROM run"))
        for number in range(RUNS):
            name = f"run-{number}"
            assert states[name] == "done", name
            events = journal.events(name)
            incident = Incident.of(events)
            assert incident.status is not None
            cut = sum(getattr(getattr(event, "failure", None), "rule", "") == "cut-off" for event in events)
            ((ended,),) = journal.read("SELECT count(*) FROM step WHERE run = ? AND key NOT LIKE '%.begun'", (name,))
            # Every attempt has one result, or was cut off; if one that had ended were made again, more would have begun.
            assert incident.attempts == ended + cut, name
            assert begun[name] <= incident.attempts <= begun[name] + cut, (name, begun[name], incident.attempts, cut)
            if number % 2 and cut:  # not idempotent: it is not made again
                assert (cut, incident.status) == (1, "partial"), name
        before = {
            table: sorted(map(str, journal.read(f"SELECT * FROM {table}")))
            for table in ("attempt", "incident", "by_hour")
        }
        journal.rebuild()
        for table, rows in before.items():
            assert sorted(map(str, journal.read(f"SELECT * FROM {table}"))) == rows
