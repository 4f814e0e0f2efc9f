"""Writes to a journal until it is killed: `backup_writer.py LOG` prints the id of each run once it is acknowledged."""

from __future__ import annotations

import sys
import threading
from itertools import count
from pathlib import Path

import rung
from tests.deploy.backup_tasks import OPEN, SEALED

if __name__ == "__main__":
    journal = rung.journal()
    log = sys.argv[1]
    rung.durable.start(journal, SEALED, "token")
    threading.Thread(
        target=lambda: rung.durable.start(journal, OPEN, "backup-bill", log=log, is_blocked=True), daemon=True
    ).start()
    while not Path(log).exists():  # the step is stored, and the run is in the middle of the next one
        threading.Event().wait(0.01)
    for number in count():
        rung.durable.start(journal, f"run-{number}", "number", value=number)
        sys.stdout.write(f"run-{number}\n")
        sys.stdout.flush()
