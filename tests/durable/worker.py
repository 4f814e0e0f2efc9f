"""A process to be killed: makes recoveries with a run id, and counts every attempt in a side file before it is made."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import rung
from rung.store import open_journal


def main(where: str, side: str, runs: int, seed: int) -> None:
    with open_journal(where) as journal:
        for number in range(runs):
            name = f"run-{number}"
            plan = [(seed * 31 + number * 7 + place) % 5 for place in range(8)]

            def attempt(request: rung.Request, name: str = name, plan: list[int] = plan) -> dict[str, int]:
                tried = note(side, f"{name} begun")
                time.sleep(0.01)
                fate = plan[tried % len(plan)] if tried < 6 else 2
                if fate in {0, 3, 4}:
                    note(side, f"{name} failed {tried}")
                    raise TimeoutError(f"attempt {tried} timed out")
                if fate == 1:
                    note(side, f"{name} failed {tried}")
                    raise FileNotFoundError(2, f"no file {tried}")
                note(side, f"{name} good {tried}")
                return {"tried": tried}

            request = rung.Request(prompt=name, model="small", idempotent=number % 2 == 0)
            policy = rung.policy("task", models=["small", "large"], attempts=12, backoff={"base": 0.001, "cap": 0.01})
            try:
                outcome = rung.recover_sync(
                    attempt,
                    request,
                    policy=policy,
                    journal=journal,
                    run_id=name,
                    retry_budget=None,
                    breakers=rung.Breakers(),
                )
            except rung.RungError as error:  # another worker has it
                note(side, f"{name} refused {error}")
                continue
            note(side, f"{name} ended {outcome.status}")

    sys.stdout.write("all done\n")


def note(side: str, line: str) -> int:
    """Write a line down for good; how many of the same beginning there were before."""
    before = (
        sum(text.startswith(line.split(" ended", maxsplit=1)[0]) for text in Path(side).read_text().splitlines())
        if Path(side).exists()
        else 0
    )
    handle = os.open(side, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.fsync(handle)
    os.close(handle)
    return before


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
