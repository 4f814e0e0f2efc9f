"""Tasks of the backup tests, and `backup_tasks.py RUN`, which starts or continues a run and prints its result."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import rung

SECRET = "sk-ant-api03-" + "Ab3" * 31 + "AA"  # redaction recognizes it, so the result is sealed
SEALED, OPEN = "sealed", "open"


@rung.durable.task("token")
def token() -> dict[str, str]:
    return {"token": SECRET}


@rung.durable.task("number")
def number(value: int) -> int:
    return int(rung.durable.step("value", lambda: value))


@rung.durable.task("backup-bill")
def bill(log: str, is_blocked: bool) -> str:
    first = str(rung.durable.step("number", lambda: "2026-17"))

    def send() -> str:
        Path(log).write_text(first)
        if is_blocked and "backup_writer" in sys.argv[0]:
            threading.Event().wait()
        return f"{first} is sent"

    return str(rung.durable.step("send", send))


if __name__ == "__main__":
    arguments = {SEALED: ("token", {}), OPEN: ("backup-bill", {"log": sys.argv[2], "is_blocked": True})}
    name, values = arguments[sys.argv[1]]
    with rung.journal() as journal:
        sys.stdout.write(f"{json.dumps(rung.durable.start(journal, sys.argv[1], name, **values))}\n")
