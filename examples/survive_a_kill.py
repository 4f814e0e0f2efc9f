"""Survive `kill -9`: a second process continues the run, and the finished step is not repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import rung


@rung.durable.task("bill")
def bill(folder: str) -> str:
    """Draw an invoice number once, then die in the first process and finish in the second."""
    number = rung.durable.step("number", lambda: draw_number(folder))
    if os.environ.get("DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"invoice {number} sent"


def draw_number(folder: str) -> int:
    """Return the next number, and write down that it was drawn."""
    file = Path(folder) / "numbers"
    with file.open("a") as numbers:
        numbers.write("drawn\n")
    return len(file.read_text().splitlines())


def work(folder: str) -> None:
    """Start the run; if it was started before, continue it."""
    with rung.journal(Path(folder) / "journal.db") as journal:
        print(rung.durable.start(journal, "bill-17", "bill", folder=folder), flush=True)


def main() -> None:
    """Run the task in a process that is killed, then in one that is not."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, folder]
        first = subprocess.run(command, env={**os.environ, "DIE": "1"}, check=False)
        print(f"the first process was killed (exit code {first.returncode})", flush=True)
        subprocess.run(command, check=True)
        print("numbers drawn:", len((Path(folder) / "numbers").read_text().splitlines()))


if __name__ == "__main__":
    work(sys.argv[1]) if len(sys.argv) > 1 else main()
