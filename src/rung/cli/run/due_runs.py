"""Parked runs whose time has come: found in the journal, and taken up by processes of this account.

`rung resume --due` and `rung serve` use it. Only runs whose call this account has sealed on this machine are taken up. Each
makes one attempt, its probe; one that meets its limit again is parked again and leaves, until it is due once more.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.cli.exit_codes import TRY_LATER
from rung.cli.run.park_options import EXIT
from rung.cli.run.parked_call import load_parked_call
from rung.core.domain.errors import RungError
from rung.core.domain.incident import Incident
from rung.engine.durable.parking import CALL_STEP
from rung.store.messages import incidents_with_intervention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rung.cli.run.parked_call import ParkedCall
    from rung.store.journal.journal import Journal

SPREAD_SECONDS: Final = 1.0  # between two runs that are taken up
POLL_SECONDS: Final = 15.0
FIRST_PAUSE_SECONDS: Final = 300.0  # before a run that could not be taken up is tried again
MAX_PAUSE_SECONDS: Final = 3_600.0


class ParkedRun(NamedTuple):
    """A parked run that no live process owns. `is_due`: its limit has reopened, or a person wakes it."""

    id: str
    until: float
    is_due: bool


class TakenUp(NamedTuple):
    """A process that takes a parked run up, and the file of its output."""

    run: str
    process: subprocess.Popen[bytes]
    output: Path


def parked_runs(journal: Journal, now: float) -> Iterator[ParkedRun]:
    """Yield the parked runs that no live process owns."""
    woken = incidents_with_intervention(journal)
    for run in journal.runs.open_runs():
        if run.owned or CALL_STEP not in journal.runs.step_keys(run.id):
            continue
        incident = Incident.of(journal.events(run.id))
        if incident.parked_until is not None and incident.probe_at is not None:
            yield ParkedRun(run.id, incident.parked_until, incident.probe_at <= now or run.id in woken)


def start_due(
    journal: Journal, runs: list[ParkedRun], journal_at: str, failed: Callable[[str, str], None]
) -> list[TakenUp]:
    """Start a process for each run that is due, one after the other. `failed(run, why)` is told of those that cannot start."""
    started: list[TakenUp] = []
    seen: set[tuple[str, ...]] = set()  # the stages of a pipeline share its call
    for run in runs:
        if not run.is_due:
            continue
        try:
            call = load_parked_call(journal, run.id)
            if call is None or call.words in seen:
                continue
            call.require_runnable()
            if started:
                time.sleep(SPREAD_SECONDS)
            started.append(_start(call, run.id, journal_at))
            seen.add(call.words)
        except (RungError, OSError) as error:
            failed(run.id, str(error))
    return started


def _start(call: ParkedCall, run: str, journal_at: str) -> TakenUp:
    output = output_file(run)
    return TakenUp(run, start_in_background(call, output, call.environment(run, journal_at, EXIT)), output)


def start_in_background(call: ParkedCall, output: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command that this account has sealed, in a session of its own. Its output is appended to a file."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        with call.input_file() as given:
            return subprocess.Popen(  # noqa: S603  # the user's own command, sealed by this account
                call.command(),
                cwd=call.folder,
                env=environment,
                stdin=given,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
    finally:
        os.close(descriptor)


def output_file(run: str) -> Path:
    """Return the file of what a run prints when it is taken up without a terminal."""
    from rung.wiring.journals import default_path

    folder = default_path().parent / "runs"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{hashlib.sha256(run.encode()).hexdigest()[:16]}.out"


class DueRunsThread:
    """Takes up parked runs of a journal while a service runs. Its processes go on when the service ends."""

    def __init__(self, journal: Journal, journal_at: str, log: Callable[[str], Any]) -> None:
        self._journal, self._journal_at, self._log = journal, journal_at, log
        self._stopped = threading.Event()
        self._pauses: dict[str, tuple[float, float]] = {}  # by run: not before, and the pause after the next failure
        self._running: list[TakenUp] = []

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._poll, name="rung-due-runs", daemon=True).start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()

    def _poll(self) -> None:
        trouble = ""
        while True:
            try:
                self.take_up(time.time())
            except Exception as error:  # noqa: BLE001  # the journal is unavailable: the next poll tries again
                if trouble != (trouble := str(error)):
                    self._log(f"rung: parked runs cannot be read: {trouble}")
            if self._stopped.wait(POLL_SECONDS):
                return

    def take_up(self, now: float) -> None:
        """Take up what is due now."""
        for taken in [taken for taken in self._running if taken.process.poll() is not None]:
            self._running.remove(taken)
            if taken.process.returncode in (0, TRY_LATER):
                self._pauses.pop(taken.run, None)
            self._log(f"rung: run {taken.run} {describe_end(taken.process.returncode)} (output: {taken.output})")
        busy = {taken.run for taken in self._running}
        runs = [run for run in parked_runs(self._journal, now) if run.id not in busy]
        due = [run for run in runs if self._pauses.get(run.id, (0.0, 0.0))[0] <= now]
        for taken in start_due(self._journal, due, self._journal_at, self._failed):
            self._log(f"rung: run {taken.run} is taken up: its limit reopens, or a person woke it")
            self._pause(taken.run)  # if it ends without progress
            self._running.append(taken)

    def _failed(self, run: str, why: str) -> None:
        self._pause(run)
        self._log(f"rung: run {run} cannot be taken up: {why}")

    def _pause(self, run: str) -> None:
        _, pause = self._pauses.get(run, (0.0, FIRST_PAUSE_SECONDS))
        self._pauses[run] = (time.time() + pause, min(2 * pause, MAX_PAUSE_SECONDS))


def describe_end(code: int) -> str:
    """Return how a run ended that was taken up, by its exit code."""
    if code == 0:
        return "succeeded"
    return "is parked again" if code == TRY_LATER else f"ended with exit code {code}"
