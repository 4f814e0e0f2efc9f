"""A crew of real processes on either store, run from any number of folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.policy.serializer import to_toml
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.crew.contract import MessageType
    from rung.store.crew.rows import TaskRow

LONG = 240.0
RUNG = [sys.executable, "-m", "rung"]
WORKER = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--"]
QUICK = [*WORKER, "sh", "-c", "cat >/dev/null; echo done"]
SLOW = [*WORKER, "sleep", "600"]


def until_file(file: Path) -> list[str]:
    """Return the command of a worker whose work ends when the file exists."""
    return [*WORKER, "sh", "-c", f"cat >/dev/null; until [ -e {file} ]; do sleep 0.1; done; echo done"]


class RunningCrew:
    """A table, and the processes that were started for it from any folder."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or str(folder / "crew.db")
        self.mark = f"{folder}/"  # every process of this crew has it in its environment
        self.environment = {**os.environ, "RUNG_JOURNAL": str(folder / "journal.db"), "RUNG_TEST_CREW": self.mark}
        self.fronts: list[subprocess.Popen[str]] = []

    def plan(self, tasks: Sequence[dict[str, Any]], **crew: Any) -> Path:
        """Write a plan, and return its file."""
        settings = {"name": "c", "worker": QUICK, "poll": 0.1, "beat": 0.5, "stale_after": 30.0, "grace": 2.0, **crew}
        lines = ["[crew]", to_toml(settings)]
        for task in tasks:
            lines += ["[[task]]", to_toml({"instruction": f"do {task['id']}", **task})]
        file = self.folder / "plan.toml"
        file.write_text("\n".join(lines))
        return file

    def start(self, *words: str, folder: Path | None = None, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start `rung WORDS` in a folder; `prefix` is a command that runs it, such as `unshare`."""
        front = subprocess.Popen(
            [*prefix, *RUNG, *words],
            cwd=folder or self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.fronts.append(front)
        return front

    def run(self, *options: str, folder: Path | None = None, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start `rung crew run` with the plan."""
        plan = str(self.folder / "plan.toml")
        return self.start("crew", "run", plan, "--db", self.url, *options, folder=folder, prefix=prefix)

    def task(self, name: str) -> TaskRow:
        """Return a row."""
        with CrewTable.open(self.url) as table:
            found = table.task(name)
        assert found is not None
        return found

    def messages(self, name: str | None = None, *types: MessageType) -> list[str]:
        """Return the texts of messages."""
        with CrewTable.open(self.url) as table:
            return [message.message for message in table.messages(name, types=types)]

    def until(self, true: Callable[[], object], seconds: float = LONG) -> None:
        """Wait until a condition holds; the table may still be made."""
        end = time.monotonic() + seconds
        while True:
            with suppress(Exception):
                if true():
                    return
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)

    def until_state(self, name: str, state: str) -> None:
        """Wait until a task has a state."""
        self.until(lambda: self.task(name).state == state)

    def log(self) -> str:
        """Return what the crew's processes printed."""
        return "\n".join(f"== {file}\n{file.read_text()}" for file in sorted(self.folder.rglob("logs/*.log")))

    def processes(self, *words: str) -> list[int]:
        """Return the live processes of this crew whose command line contains all words.

        A child that has not executed its own program yet shows the command line of its parent: it is left out.
        """
        lines: dict[int, list[str]] = {}
        parents: dict[int, int] = {}
        mark = f"RUNG_TEST_CREW={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    number, line = int(entry.name), (entry / "cmdline").read_bytes().decode().split("\0")
                    state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                    if state != "Z" and line != [""]:
                        lines[number], parents[number] = line, int(parent)
        return [
            number
            for number, line in lines.items()
            if all(word in line for word in words) and lines.get(parents[number]) != line
        ]

    def conductors(self) -> list[int]:
        """Return the conductor processes."""
        return self.processes("crew", "conduct")

    def watchdogs(self) -> list[int]:
        """Return the watchdog processes."""
        return self.processes("crew", "watch")

    def signal(self, numbers: Sequence[int], what: int) -> None:
        """Signal processes."""
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, what)

    def close(self) -> None:
        """Kill every process of the crew."""
        while left := self.processes():
            self.signal(left, signal.SIGKILL)
            time.sleep(0.05)
        for front in self.fronts:
            front.communicate()
