"""Heartbeat of this process in a fleet: a thread that announces it, beats every third of its lease, and leaves at its end.

A process of a fleet shares a PostgreSQL journal. `beside` gives gateways and services a heartbeat there alone: a SQLite
journal is one machine's, where a durable write every ten seconds would tell nobody anything.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.policy.executor_health import LEASE_SECONDS, beat_interval, check_lease
from rung.engine.signal_flag import SignalWakeup
from rung.store.fleet.executors import ExecutorState, announce, beat, leave, new_executor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.store.fleet.executors import Executor, ExecutorRole
    from rung.store.journal.journal import Journal

LEASE_VARIABLE: Final = "RUNG_FLEET_LEASE"
LEAVE_SECONDS: Final = 5.0  # for the last write, when the process exits


class FleetHeartbeat:
    """Keeps the row of this process. An unavailable database is reported once and never reaches the host process.

    `detail` is called before each beat; `on_drain`, once, in the heartbeat's thread, when an operator orders it to drain.
    """

    def __init__(
        self,
        journal: Journal,
        executor: Executor,
        *,
        detail: Callable[[], Mapping[str, Any]] = dict,
        on_drain: Callable[[], object] = lambda: None,
        warn: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self.executor = executor
        self._journal = journal
        self._detail = detail
        self._on_drain = on_drain
        self._warn = warn
        self._wakeup = SignalWakeup()
        self._stopping = False
        self._announced = False
        self._last_error = ""
        self.is_draining = False  # by an order, or because the process said so
        self._thread = threading.Thread(target=self._run, name="rung-fleet-heartbeat", daemon=True)

    def start(self) -> FleetHeartbeat:
        """Announce this process and begin to beat, in a thread."""
        self._thread.start()
        return self

    def stop(self, seconds: float = LEAVE_SECONDS) -> None:
        """End the heartbeat and remove the row; when the database does not answer in time, the row expires instead."""
        self._stopping = True
        self._wakeup.wake()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def drain(self) -> None:
        """Say that this process takes no new runs, as on SIGTERM. Safe in a signal handler; `on_drain` is not called."""
        self.is_draining = True
        self._wakeup.wake()

    def __enter__(self) -> FleetHeartbeat:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- in the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping:
            self._guarded(self._beat)
            self._wakeup.wait(beat_interval(self.executor.lease))
        self._guarded(lambda: leave(self._journal, self.executor.id))

    def _beat(self) -> None:
        said = replace(self.executor, detail=dict(self._detail()))
        if self.is_draining:
            said = replace(said, state=ExecutorState.DRAINING)
        if not self._announced:
            said, self._announced = announce(self._journal, said), True
        self.executor = beat(self._journal, said)
        if self.executor.state is ExecutorState.DRAINING and not self.is_draining:
            self.is_draining = True
            self._on_drain()

    def _guarded(self, write: Callable[[], object]) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001  # a heartbeat must not end the process that it speaks for
            if not self._last_error:
                self._warn(f"fleet heartbeat not written, the next one is tried: {type(error).__name__}: {error}")
            self._last_error = str(error) or type(error).__name__
        else:
            self._last_error = ""


def beside(journal: Journal | None, role: ExecutorRole, **options: Any) -> FleetHeartbeat | None:
    """Return the heartbeat of a process with this journal; None when the journal is not one that a fleet shares."""
    from rung.store.backends.postgres import PostgresBackend

    if journal is None or not isinstance(journal.backend, PostgresBackend):
        return None
    return FleetHeartbeat(journal, new_executor(role, lease=lease_setting()), **options)


def lease_setting() -> float:
    """Return the lease of this process in seconds: RUNG_FLEET_LEASE, or 30."""
    given = os.environ.get(LEASE_VARIABLE)
    if not given:
        return LEASE_SECONDS
    try:
        return check_lease(float(given))
    except ValueError:  # ConfigError is one
        raise ConfigError(LEASE_VARIABLE, given, "seconds, more than 0") from None
