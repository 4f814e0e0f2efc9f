"""A crew of real processes on either store, and the faults injected into it: workers, conductor, watchdog, server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rung.adapters.system.pid_file import read_pid
from rung.core.crew.contract import MessageType, TaskState
from rung.core.domain.errors import RungError
from rung.engine.process_identity import is_alive
from rung.store.crew.table import CrewTable
from tests.crew.storm.storm_plan import HERE, make_tasks, write_plan
from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Callable

STALE = 8.0
LOOK_SECONDS = 0.02
OUTAGE_SECONDS = 4.0
MARK = "RUNG_TEST_CREW"  # every process of the crew has it in its environment


class Storm:
    """A running crew, and what was done to it."""

    def __init__(self, folder: Path, seed: int, tasks: int, server: str = "") -> None:
        self.folder, self.seed, self.server = folder, seed, server
        self.url = f"{server}&options=-csearch_path%3Dstorm" if server else str(folder / "crew.db")
        self.runtime = folder / ("rung-crew" if server else "crew.db.d")
        self.rng = random.Random(f"storm/{seed}")
        self.tasks = {task.id: task for task in make_tasks(seed, tasks, folder)}
        helper = [sys.executable, "-S", str(HERE / "stormy_helper.py"), str(seed), str(folder)]
        self.plan = write_plan(
            list(self.tasks.values()), folder, seed, name="storm", workers=8, judge=helper, replanner=helper, review=helper, poll=0.1,
            beat=0.5, stale_after=STALE, grace=1.0, claim_within=30.0, hung=30.0, restarts=400, restart_seconds=900.0,
            deaths=100, death_seconds=30.0, redispatches=6, conductor_stale=30.0, probe_interval=2.0, probe_seconds=2.0, spread=0.5,
        )  # fmt: skip
        unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        self.environment = {**unmeasured, "RUNG_JOURNAL": str(folder / "journal.db"), MARK: str(folder)}
        self.fronts: list[tuple[subprocess.Popen[bytes], Path]] = []
        self.resumptions: list[threading.Timer] = []
        self.shot: set[int] = set()  # workers that the test has killed
        self.done: list[str] = []  # faults of the conductor and the watchdog, in order
        self.generations: dict[str, int] = {}
        self.term = 0
        self.table: CrewTable | None = None

    # -- processes ------------------------------------------------------------------------------------

    def start(self) -> subprocess.Popen[bytes]:
        """Start `rung crew run`."""
        log = self.folder / f"front-{len(self.fronts)}.log"
        command = [sys.executable, "-m", "rung", "crew", "run", str(self.plan), "--db", self.url]
        with log.open("wb") as file:
            front = subprocess.Popen(command, env=self.environment, stdout=file, stderr=file, cwd=self.folder)
        self.fronts.append((front, log))
        return front

    def pid(self, name: str) -> int | None:
        """Return the process of this name, if it is alive."""
        found = read_pid(self.runtime / "pids" / f"{name}.pid")
        return found.number if found is not None and is_alive(found) else None

    def processes(self) -> list[int]:
        """Return the live processes of this crew, apart from zombies."""
        found, mark = [], f"{MARK}={self.folder}".encode()
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                is_of_crew = entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0")
                if is_of_crew and "\nState:\tZ" not in (entry / "status").read_text():
                    found.append(int(entry.name))
        return found

    def kill(self, *names: str) -> bool:
        """Kill processes with SIGKILL, if all of them are alive."""
        pids = [self.pid(name) for name in names]
        if None in pids:
            return False
        for pid in pids:
            signal_process(pid or 0, signal.SIGKILL)
        return True

    def close(self) -> None:
        """End every process and close what the test opened, also after a failed assertion."""
        for resumption in self.resumptions:
            resumption.join()
        while left := self.processes():  # the watchdog may start another conductor meanwhile
            for number in left:
                signal_process(number, signal.SIGKILL)
            time.sleep(0.05)
        for front, _ in self.fronts:
            front.wait()
        if self.table is not None:
            self.table.close()

    # -- the storm ------------------------------------------------------------------------------------

    def run(self, seconds: float) -> int:
        """Run the crew through all faults to its end; return the exit code of the last `rung crew run`."""
        faults = [*self.faults_at_start(), *self.rng.sample(faults := self.faults(), len(faults))]
        front, until, due = self.start(), time.monotonic() + seconds, 0
        while True:
            assert time.monotonic() < until, self.log()
            time.sleep(LOOK_SECONDS)
            if front.poll() is not None:
                if self.is_over():
                    return front.returncode
                assert front.returncode != 0, f"reported success, but the crew is not over\n{self.log()}"
                front = self.start()
            ended = self.watch()
            if ended is None:
                continue
            self.hurt_a_worker()
            if faults and ended >= due and faults[0][1]():
                self.done.append(faults.pop(0)[0])
                due = min(ended + max(1, len(self.tasks) // 12), len(self.tasks) - len(faults))

    def watch(self) -> int | None:
        """Read the table, and return how many tasks have ended; None while it cannot be read. Generations only grow."""
        try:
            self.table = self.table or CrewTable.open(self.url)
            rows, term = self.table.tasks(), self.table.conductor_lease().term
        except (RungError, OSError):
            return None
        assert term >= self.term
        self.term = term
        for row in rows:
            assert row.generation >= self.generations.get(row.task_id, 0), row
            self.generations[row.task_id] = row.generation
        return sum(bool(row.outcome) for row in rows) if rows else None

    def is_over(self) -> bool:
        """Return whether every task has ended."""
        self.table = self.table or CrewTable.open(self.url)
        rows = self.table.tasks()
        return len(rows) >= len(self.tasks) and all(row.outcome for row in rows)

    def hurt_a_worker(self) -> None:
        """Sometimes kill a worker, or stop one for less than the stale threshold."""
        workers = sorted((self.runtime / "pids").glob("task-*.pid"))
        if not workers or self.rng.random() > 0.01:
            return
        pid = self.pid(self.rng.choice(workers).stem)
        if pid is None:
            return
        if self.rng.random() < 0.4:
            self.shot.add(pid)
            signal_process(pid, signal.SIGKILL)
        else:
            signal_process(pid, signal.SIGSTOP)
            # A stopped worker may hold the database lock, and the test reads the same file: resume it from a thread.
            self.resumptions.append(threading.Timer(0.5, signal_process, (pid, signal.SIGCONT)))
            self.resumptions[-1].start()

    def faults_at_start(self) -> list[tuple[str, Callable[[], bool]]]:
        """Return the faults of the first second."""
        return [
            ("watchdog killed before it confirmed", lambda: self.kill("souffleur")),
            ("watchdog killed again", lambda: self.kill("souffleur")),
            ("conductor killed before the watchdog confirmed", lambda: self.kill("conductor")),
        ]

    def faults(self) -> list[tuple[str, Callable[[], bool]]]:
        """Return the faults of the conductor and the watchdog, each with the phase that it waits for."""
        both = ("conductor", "souffleur")
        faults = [
            ("conductor killed in dispatch", lambda: self.is_dispatching() and self.kill("conductor")),
            ("conductor killed in handling", lambda: self.has_report() and self.kill("conductor")),
            ("conductor killed while a helper works", lambda: self.is_asking("") and self.kill("conductor")),
            ("both killed while a helper works", lambda: self.is_asking("") and self.kill(*both)),
            ("both killed in dispatch", lambda: self.is_dispatching() and self.kill(*both)),
            ("watchdog killed", lambda: self.kill("souffleur")),
            ("conductor stopped for a second", self.stop_conductor),
            ("killed in shutdown", self.kill_in_shutdown),
            ("handed over to another conductor", self.hand_over),
        ]
        return [*faults, ("server stopped", self.stop_server)] if self.server else faults

    def is_dispatching(self) -> bool:
        """Return whether a worker was launched that has not claimed its task."""
        assert self.table is not None
        with suppress(RungError):
            return bool(self.table.unclaimed_sessions())
        return False

    def has_report(self) -> bool:
        """Return whether a worker waits for an answer."""
        assert self.table is not None
        with suppress(RungError):
            return bool(self.table.tasks(TaskState.ERROR, TaskState.NEEDS_REVIEW))
        return False

    def is_asking(self, kind: str) -> bool:
        """Return whether a helper is at work."""
        pids = (int(file.suffix[1:]) for file in (self.folder / "asking").glob(f"{kind}*"))
        return any(Path("/proc", str(pid)).exists() for pid in pids)

    def stop_conductor(self) -> bool:
        """Stop the conductor for a second, as a busy machine does."""
        pid = self.pid("conductor")
        if pid is not None:
            signal_process(pid, signal.SIGSTOP)
            self.resumptions.append(threading.Timer(1.0, signal_process, (pid, signal.SIGCONT)))
            self.resumptions[-1].start()
        return pid is not None

    def kill_in_shutdown(self) -> bool:
        """Ask the crew to stop, and kill the conductor while it does."""
        if self.pid("conductor") is None:
            return False
        self.rung("crew", "stop", "--db", self.url)
        until = time.monotonic() + 5.0
        while time.monotonic() < until and not (self.runtime / "HANDOFF.md").exists() and self.pid("conductor"):
            time.sleep(LOOK_SECONDS)
        self.kill("conductor")
        return True

    def hand_over(self) -> bool:
        """Let the conductor hand over to another one."""
        if self.pid("conductor") is None:
            return False
        self.rung("crew", "stop", "--hand-over", "--db", self.url)
        return True

    def stop_server(self) -> bool:
        """Stop the PostgreSQL server for four seconds."""
        if self.table is not None:
            self.table.close()
        self.table = None
        with postgres.outage(self.server):
            time.sleep(OUTAGE_SECONDS)
        return True

    def rung(self, *words: str) -> None:
        """Run a `rung` command; it may fail, as the crew may be down."""
        command = [sys.executable, "-m", "rung", *words]
        subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, check=False, timeout=60)

    # -- what is left ---------------------------------------------------------------------------------

    def log(self) -> str:
        """Return what the crew's own processes printed, and the tasks that have not ended."""
        logs = [*self.folder.glob("front-*.log"), *(self.runtime / "logs").glob("[cs]o*.log")]
        texts = [f"== {file.name}\n{file.read_text(errors='replace')[-3_000:]}" for file in sorted(logs)]
        rows = []
        with suppress(Exception):
            table = self.table or CrewTable.open(self.url)
            rows = [
                f"{row.task_id} {row.state} {row.note} g{row.generation}" for row in table.tasks() if not row.outcome
            ]
        return "\n".join([f"seed {self.seed}, done: {self.done}", *texts, "== not ended", *rows])

    def messages(self, task: str, *types: MessageType) -> list[str]:
        """Return the texts of a task's messages."""
        assert self.table is not None
        return [message.message for message in self.table.messages(task, types=types)]


def signal_process(number: int, what: int) -> None:
    """Signal a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(number, what)
