"""What a worker of a storm writes down for the test, and the fault that chance gives it; standard library only."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

FAULTS = {
    "library": (
        "dies unclaimed", "dies", "stands still", "loops", "errs", "errs for ever", "warns", "warns at its end", "talks nonsense",
        "lies", "lies about tests", "renumbers", "breaks rules", "hands over in free text", "hands over in full", "leaves", "is slow",
    ),
    "sql": ("dies unclaimed", "dies", "stands still", "errs", "warns at its end", "lies", "hands over in free text", "is slow"),
    "command": ("fails", "dies", "kills its wrapper", "lies", "forges a review", "is slow"),
}  # fmt: skip
SHARES = (0.6, 0.3, 0.05)  # of the first, second and later workers of a task that have a fault


class Notes:
    """The notes of one worker process."""

    def __init__(self, folder: Path, task: str, seed: str, way: str) -> None:
        self.folder, self.task = folder, task
        self.claimed_at = time.time()
        self.number = 1 + len(list((folder / "received").glob(f"{task}.*")))
        self.rng = random.Random(f"{seed}/{task}/{self.number}")
        share = SHARES[min(self.number, len(SHARES)) - 1]
        self.fault = self.rng.choice(FAULTS[way]) if self.rng.random() < share else "well"

    def received(self, text: str, **facts: object) -> None:
        """Write down the task text that this worker was given, with its claim."""
        self.claimed_at = time.time()
        record = {"text": text, "fault": self.fault, "pid": os.getpid(), **facts}
        (self.folder / "received" / f"{self.task}.{self.number}.{os.getpid()}").write_text(json.dumps(record))

    def sent(self, kind: str, body: str) -> None:
        """Write down a message that the table has accepted."""
        with (self.folder / "sent" / f"{self.task}.jsonl").open("a") as file:
            file.write(json.dumps([kind, body]) + "\n")

    def ended(self, **facts: object) -> None:
        """Write down in which state the task was when somebody signalled this worker."""
        with (self.folder / "ended" / f"{self.task}.jsonl").open("a") as file:
            file.write(json.dumps({"fault": self.fault, "age": time.time() - self.claimed_at, **facts}) + "\n")


def do_work(text: str) -> bool:
    """Do what the task text says; return whether it says anything."""
    fields = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith(("FILE: ", "WORD: ")))
    if not {"FILE", "WORD"} <= fields.keys():
        return False
    with Path(fields["FILE"]).open("a") as file:
        file.write(fields["WORD"] + "\n")
    return True
