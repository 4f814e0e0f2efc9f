"""Lease of a durable run: its recorded steps, and an event log that accepts writes while the lease is held."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import LeaseLost
from rung.core.domain.event_codec import to_json
from rung.core.domain.events import Changed, Opened
from rung.store.journal.event_encoding import encode
from rung.store.messages import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention
    from rung.core.recovery.learned_skips import RungCount
    from rung.store.backends.port import BackendConnection, DurableFuture
    from rung.store.durable_runs import DurableRunStore

_STEP: Final = (
    "INSERT INTO step (run, key, result, at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (run, key) DO UPDATE SET result = excluded.result, at = excluded.at"
)


class DurableRunLease:
    """Lease of a run that this process owns. Writing after another process has claimed it raises LeaseLost."""

    def __init__(
        self, runs: DurableRunStore, run: str, epoch: int, *, done: Any, exhausted: bool, expires_at: float = 0.0
    ) -> None:
        self.runs = runs
        self.run = run
        self.epoch = epoch
        self.done = done  # result of an ended run, otherwise None
        self.exhausted = exhausted  # claimed too often without a new step
        self.project = runs.journal.project
        self._expires_at = expires_at  # at the earliest: as of the last write that is known to be committed
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None

    # -- steps ----------------------------------------------------------------------------------------

    def steps(self) -> dict[str, Any]:
        """Return the results of the finished steps, by key."""
        rows = self.runs.journal.read("SELECT key, result FROM step WHERE run = ?", (self.run,))
        reveal = self.runs.key.reveal
        return {key: json.loads(reveal(result, place_of(self.run, f"step {key}"))) for key, result in rows}

    def record(self, key: str, result: Any) -> None:
        """Record a finished step. Once this returns, the step never runs again."""
        encoded, now = self._encoded_step(key, result), self.runs.now()

        def work(connection: BackendConnection) -> None:
            self._renew_or_raise(connection, now, "idle = 0, ")
            connection.execute(_STEP, (self.run, key, encoded, now))

        def present(connection: BackendConnection) -> bool:
            return bool(
                connection.execute("SELECT 1 FROM step WHERE run = ? AND key = ? AND at = ?", (self.run, key, now))
            )

        self.runs.journal.write(work, present).result()
        self._expires_at = max(self._expires_at, now + self.runs.lease)

    def _encoded_step(self, key: str, result: Any) -> str:
        return self.runs.key.protect(as_json(result, f"the result of step {key!r}"), place_of(self.run, f"step {key}"))

    def finish(self, result: Any) -> None:
        """Record the result of the run and end it."""
        plain, now = as_json(result, f"the result of run {self.run}"), self.runs.now()
        encoded = self.runs.key.protect(plain, place_of(self.run, "result"))

        def work(connection: BackendConnection) -> None:
            self._renew_or_raise(connection, now, "")
            connection.execute(
                "UPDATE run SET state = 'done', result = ?, owner = '' WHERE id = ?", (encoded, self.run)
            )

        def present(connection: BackendConnection) -> bool:
            """Another end of the run, as by a cancellation, has another epoch."""
            ended = connection.execute(
                "SELECT 1 FROM run WHERE id = ? AND epoch = ? AND state = 'done'", (self.run, self.epoch)
            )
            return bool(ended)

        self.runs.journal.write(work, present).result()
        self.done = json.loads(plain)

    def release(self) -> None:
        """Release an unfinished run, so that another process can claim it at once."""
        self._release().result()

    def give_back(self) -> None:
        """Release a run that was refused: the claim does not count as one without progress."""
        self._release("idle = idle - 1, ").result()

    def _release(self, assignments: str = "") -> DurableFuture[None]:
        now = self.runs.now()

        def work(connection: BackendConnection) -> None:
            self._renew_or_raise(connection, now, assignments)
            connection.execute("UPDATE run SET owner = '', lease = 0 WHERE id = ?", (self.run,))

        return self.runs.journal.write(work, lambda _: True)

    def _renew_or_raise(self, connection: BackendConnection, now: float, assignments: str) -> None:
        """Renew the lease in the caller's transaction; raise LeaseLost when another process claimed the run."""
        renewed = connection.execute(
            f"UPDATE run SET {assignments}lease = ?, touched_at = ? WHERE id = ? AND epoch = ? AND state = 'open' RETURNING 1",  # noqa: S608
            (now + self.runs.lease, now, self.run, self.epoch),
        )
        if not renewed:
            raise LeaseLost(self.run)

    # -- the fenced event log -------------------------------------------------------------------------

    def append(
        self, incident: str, first: int, events: Sequence[Event], steps: Mapping[str, Any] | None = None
    ) -> DurableFuture[None]:
        """Append events of this run, and record steps, in one transaction, as long as this process owns the run.

        An event that the journal stores redacted or clipped is also recorded whole, as the step `event.POSITION`.
        """
        now = self.runs.now()
        rows = self._step_rows(first, events, steps or {}, now)

        def precondition(connection: BackendConnection) -> None:
            self._renew_or_raise(connection, now, "")
            if rows:
                connection.executemany(_STEP, rows)

        return self.runs.journal.append_if(incident, first, events, precondition)

    def record_appended(self, events: Sequence[Event], steps: Mapping[str, Any]) -> None:
        """Record the steps that `append` records, for the events of a run that was not durable when they were appended."""
        now = self.runs.now()
        rows = self._step_rows(0, events, steps, now)

        def work(connection: BackendConnection) -> None:
            self._renew_or_raise(connection, now, "")
            if rows:
                connection.executemany(_STEP, rows)

        self.runs.journal.write(work, lambda _: True).result()

    def _step_rows(
        self, first: int, events: Sequence[Event], steps: Mapping[str, Any], now: float
    ) -> list[tuple[str, str, str, float]]:
        whole = {f"event.{n}": to_json(event) for n, event in enumerate(events, first) if _is_altered(event)}
        return [(self.run, key, self._encoded_step(key, result), now) for key, result in {**whole, **steps}.items()]

    def intervention(self, incident: str) -> Intervention | None:
        """Return a pending operator intervention for an incident."""
        return self.runs.journal.intervention(incident)

    def model_for(self, session: str) -> str:
        """Return the model that an operator chose for a session."""
        return self.runs.journal.model_for(session)

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Return the rung that resolved this failure before."""
        return self.runs.journal.suggest_rung(project, failure)

    def rung_counts(self, project: str, ladder: str, window: float, now: float) -> Sequence[RungCount]:
        """Return how often the ladder's rungs helped."""
        return self.runs.journal.rung_counts(project, ladder, window, now)

    def similar_durations(self, incident: str, model: str, agent: str) -> Sequence[float]:
        """Return the durations of successful attempts at tasks of this incident's kind."""
        return self.runs.journal.similar_durations(incident, model, agent)

    # -- the lease ------------------------------------------------------------------------------------

    def __enter__(self) -> DurableRunLease:
        self._renewer = threading.Thread(target=self._renew_until_stopped, name=f"rung-lease-{self.run}", daemon=True)
        self._renewer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if any(error) and self.done is None:  # stopped: a later call can claim the run at once
            self._release()

    def _renew_until_stopped(self) -> None:
        """Renew the lease periodically; stop when it is lost, since the next write raises LeaseLost."""
        while not self._stop.wait(self.runs.lease / 3):
            try:
                self.renew()
            except LeaseLost:
                return
            except Exception:  # noqa: BLE001, S112  # the store is unavailable: retry while the lease lasts
                continue

    def renew(self) -> None:
        """Renew the lease; raise LeaseLost when another process claimed the run."""
        now = self.runs.now()
        self.runs.journal.write(lambda connection: self._renew_or_raise(connection, now, ""), lambda _: True).result()
        self._expires_at = max(self._expires_at, now + self.runs.lease)

    @property
    def is_in_doubt(self) -> bool:
        """Return whether the lease may have expired, as after the process was stopped: others may own the run."""
        return self.runs.now() >= self._expires_at


def place_of(run: str, what: str) -> str:
    """Return the place of a stored text, to which its seal is bound."""
    return f"run {run!r}, {what}"


def _is_altered(event: Event) -> bool:
    """Return whether the journal stores less than the event. Requests are recorded relative to the caller's."""
    return not isinstance(event, Opened | Changed) and encode(event).event is not event
