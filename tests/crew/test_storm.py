"""A crew of real processes under faults: workers are killed, stopped or loop, and the conductor is killed twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.pid_file import read_pid
from rung.core.crew.contract import MessageType, TaskState
from rung.core.policy.serializer import to_toml
from rung.engine.process_identity import is_alive
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Iterator

TASKS = int(os.environ.get("RUNG_CREW_TASKS", "40"))
SEED = int(os.environ.get("RUNG_CREW_SEED", "1"))
STALE = 10.0
LONG = 420.0
WORKER = Path(__file__).with_name("stormy_worker.py")


class Storm:
    """A running crew, and the faults injected into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "crew.db"
        self.pids = folder / "crew.db.d" / "pids"
        self.rng = random.Random(SEED)
        crew = {
            "name": "storm", "workers": 8, "worker": [sys.executable, str(WORKER), str(SEED), str(folder)],
            "poll": 0.3, "beat": 1.0, "stale_after": STALE, "grace": 2.0, "claim_within": 60.0,
            "restarts": 200, "restart_seconds": 900.0, "deaths": 60, "death_seconds": 30.0, "conductor_stale": 60.0,
        }  # fmt: skip
        lines = ["[crew]", to_toml(crew)]
        for n in range(1, TASKS + 1):
            needs = [f"task-{m:02}" for m in self.rng.sample(range(1, n), 1)] if n > 8 and n % 4 == 0 else []
            lines += ["[[task]]", to_toml({"id": f"task-{n:02}", "instruction": f"do {n}", "depends_on": needs})]
        (folder / "plan.toml").write_text("\n".join(lines))
        self.environment = {**os.environ, "RUNG_JOURNAL": str(folder / "journal.db"), "RUNG_CREW": str(self.db)}
        self.resumptions: list[threading.Timer] = []
        self.front: subprocess.Popen[bytes] | None = None
        self.table: CrewTable | None = None

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "rung", "crew", "run", str(self.folder / "plan.toml"), "--db", str(self.db)]
        with (self.folder / "front.log").open("wb") as log:
            self.front = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        return self.front

    def open_table(self) -> CrewTable:
        self.table = CrewTable.open(str(self.db))
        return self.table

    def clean_up(self) -> None:
        """End every process and close what the test opened, also after a failed assertion."""
        for resumption in self.resumptions:
            resumption.join()
        while left := crew_processes(self.db):  # the watchdog may start another conductor meanwhile
            for number in left:
                self.send_signal(number, signal.SIGKILL)
            time.sleep(0.05)
        if self.front is not None:
            self.front.wait()
        if self.table is not None:
            self.table.close()

    def inject_fault(self) -> None:
        """Sometimes kill a worker, or stop one for less than the stale threshold."""
        workers = sorted(self.pids.glob("task-*.pid"))
        if not workers or self.rng.random() > 0.15:
            return
        pid = read_pid(self.rng.choice(workers))
        if pid is None or not is_alive(pid):
            return
        if self.rng.random() < 0.4:
            self.send_signal(pid.number, signal.SIGKILL)
        else:
            self.send_signal(pid.number, signal.SIGSTOP)
            # A stopped worker may hold the database lock, and the test reads the same file: resume it from a thread.
            self.resumptions.append(threading.Timer(1.0, self.send_signal, (pid.number, signal.SIGCONT)))
            self.resumptions[-1].start()

    def send_signal(self, number: int, what: int) -> None:
        try:
            os.kill(number, what)
        except ProcessLookupError:
            return

    def kill_conductor(self) -> None:
        """Kill the conductor and wait for its replacement."""
        file = self.pids / "conductor.pid"
        first = read_pid(file)
        assert first is not None
        os.kill(first.number, signal.SIGKILL)
        until = time.monotonic() + 120
        while (now := read_pid(file)) is None or now == first or not is_alive(now):
            assert time.monotonic() < until, "the conductor was not replaced"
            time.sleep(0.1)


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[Storm]:
    made = Storm(tmp_path)
    try:
        yield made
    finally:
        made.clean_up()


def crew_processes(db: Path) -> list[int]:
    """Return the processes with this crew in their environment, except the test itself."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                belongs = f"RUNG_CREW={db}".encode() in (entry / "environ").read_bytes().split(b"\0")
                is_zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if belongs and not is_zombie:
                found.append(int(entry.name))
    return found


def test_a_crew_in_a_storm(storm: Storm) -> None:
    """Every task ends complete or escalated, none twice; no healthy worker is ended, no process is left."""
    front = storm.start()
    table = None
    deadline = time.monotonic() + LONG
    kills_at = [TASKS // 4, TASKS // 2]
    while front.poll() is None:
        assert time.monotonic() < deadline, (storm.folder / "front.log").read_text()[-2_000:]
        time.sleep(0.3)
        if table is None and storm.db.exists() and (storm.pids / "conductor.pid").exists():
            table = storm.open_table()
        if table is None:
            continue
        storm.inject_fault()
        if kills_at and table.counts()[TaskState.COMPLETE] >= kills_at[0]:
            kills_at.pop(0)
            storm.kill_conductor()
    assert table is not None
    assert kills_at == []
    log = (storm.folder / "front.log").read_text() + (storm.folder / "crew.db.d/logs/conductor.log").read_text()
    rows = table.tasks()
    assert len(rows) == TASKS
    for row in rows:
        completions = table.messages(row.task_id, types=(MessageType.COMPLETION,))
        if row.state is TaskState.COMPLETE:
            assert len(completions) == 1, log
        else:
            assert (row.state, row.outcome) == (TaskState.EXITED, "escalated"), (row, log)
            assert completions == []
            assert (storm.folder / f"crew.db.d/escalations/{row.task_id}.md").exists()
    assert sum(row.state is TaskState.COMPLETE for row in rows) > TASKS * 0.7, log
    ended = storm.folder / "ended.jsonl"
    for record in map(json.loads, ended.read_text().splitlines() if ended.exists() else ()):
        assert not record["mine"] or record["state"] in ("exited", "complete"), record
        assert not record["mine"] or record["state"] != "exited" or record["fault"] in ("loops", "stands still"), record
    assert front.returncode in (0, 3)
    until = time.monotonic() + 60
    while crew_processes(storm.db) and time.monotonic() < until:
        time.sleep(0.1)
    assert crew_processes(storm.db) == []
    assert list(storm.pids.iterdir()) == []
