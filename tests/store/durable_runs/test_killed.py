"""Workers killed at random points: nothing is lost, no finished attempt runs again, every run ends."""

from __future__ import annotations

import os
import random
import signal
import time
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from rung.core.domain.incident import Incident
from rung.store import open_journal
from tests.store.durable_runs import worker

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("RUNG_KILLS", "10"))
RUNS = max(60, 2 * KILLS)
LONG = 120.0


class Storm:
    """Starts a worker and kills it after a random time, repeatedly; then lets it finish."""

    def __init__(self, where: str, side: Path, seed: int) -> None:
        self.where, self.side, self.seed = where, side, seed
        self.chance = random.Random(seed)
        side.mkdir()
        (side / "lives").touch()
        self.context: Any = get_context("forkserver")
        self.context.set_forkserver_preload(
            ["tests.store.durable_runs.worker", "rung.store.backends.sqlite", "rung.store.backends.postgres"]
        )

    def begin(self) -> Any:
        process = self.context.Process(target=worker.main, args=(self.where, self.side, RUNS, self.seed))
        process.start()
        return process

    def strike(self) -> bool:
        """Run one worker and kill it during its work; return False when there was nothing left to do."""
        before = self._attempts()
        process = self.begin()
        until = time.monotonic() + LONG
        while self._attempts() == before and process.is_alive() and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(self.chance.random() * 0.08)
        process.kill()
        process.join()
        return bool(process.exitcode == -signal.SIGKILL)

    def end(self) -> None:
        """Run workers undisturbed: everything ends, and nothing runs again."""
        for _ in range(2):
            process = self.begin()
            process.join(LONG)
            assert process.exitcode == 0

    def _attempts(self) -> int:
        return (self.side / "lives").stat().st_size


def test_kill_minus_nine(url: str, tmp_path: Path) -> None:
    """Compare the side files with the journal, run by run."""
    storm = Storm(url, tmp_path / "side", seed=KILLS)
    lives = kills = 0
    while kills < KILLS and lives < 2 * KILLS:
        kills, lives = kills + storm.strike(), lives + 1
    assert kills == KILLS, "killed after its work: give it more"
    storm.end()
    check(url, tmp_path / "side")


def check(where: str, side: Path) -> None:
    cuts = 0
    with open_journal(where) as journal:
        states: dict[str, str] = dict(journal.read("SELECT id, state FROM run"))
        for number in range(RUNS):
            name = f"run-{number}"
            assert states[name] == "done", name
            begun = (side / name).read_text().count("begun") if (side / name).exists() else 0
            events = journal.events(name)
            incident = Incident.of(events)
            assert incident.status is not None
            cut = sum(getattr(getattr(event, "failure", None), "rule", "") == "cut-off" for event in events)
            cuts += cut
            ((ended,),) = journal.read(
                "SELECT count(*) FROM step WHERE run = ? AND key LIKE 'attempt.%' AND key NOT LIKE '%.begun' AND key NOT LIKE '%.report.%'",
                (name,),
            )
            # Every attempt has one result or was interrupted; a repeated finished attempt would make more starts than that.
            assert incident.attempts == ended + cut, name
            assert begun <= incident.attempts <= begun + cut, (name, begun, incident.attempts, cut)
            if number % 2 and cut:  # not idempotent: not repeated
                assert (cut, incident.status) == (1, "partial"), name
        assert cuts, "no attempt was ever cut off: the kills came at the wrong time"
        before = {
            table: sorted(map(str, journal.read(f"SELECT * FROM {table}")))
            for table in ("attempt", "incident", "by_hour")
        }
        journal.rebuild()
        for table, rows in before.items():
            assert sorted(map(str, journal.read(f"SELECT * FROM {table}"))) == rows
