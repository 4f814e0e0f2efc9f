"""Process that the tests kill: runs durable recoveries and counts every attempt in a side file before it begins."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import rung
from rung.store import open_journal

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal


def main(where: str, side: Path, runs: int, seed: int) -> None:
    """Take every run to its end; claim an ended run again now and then, which must not repeat it."""
    with open_journal(where) as journal:
        done = {name for (name,) in journal.read("SELECT id FROM run WHERE state = 'done'")}
        again = random.Random(len(done)).choice(sorted(done)) if done else ""
        for number in range(runs):
            name = f"run-{number}"
            if name not in done or name == again:
                recover(journal, side, name, number, seed)
    note(side / "lives", "over")


def recover(journal: Journal, side: Path, name: str, number: int, seed: int) -> None:
    """One run, whose attempts fail as the seed says."""
    plan = [(seed * 31 + number * 7 + place) % 5 for place in range(8)]

    def attempt(_: rung.Request) -> dict[str, int]:
        tried = note(side / name, "begun")
        note(side / "lives", f"{name} begun")
        time.sleep(0.01)
        fate = plan[tried % len(plan)] if tried < 6 else 2
        if fate in {0, 3, 4}:
            raise TimeoutError(f"attempt {tried} timed out")
        if fate == 1:
            raise FileNotFoundError(2, f"no file {tried}")
        return {"tried": tried}

    rung.durable.recover_sync(
        attempt,
        rung.Request(prompt=name, model="small", idempotent=number % 2 == 0),
        policy=rung.policy("task", models=["small", "large"], attempts=12, backoff={"base": 0.001, "cap": 0.01}),
        journal=journal,
        run_id=name,
        retry_budget=None,
        breakers=rung.BreakerRegistry(),
    )


def note(file: Path, line: str) -> int:
    """Write a line down, which a kill does not undo; how many there were before."""
    before = file.read_text().count("\n") if file.exists() else 0
    handle = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)
    return before
