"""Parked runs outlive their process: a running recovery becomes durable when it is parked.

The call that takes it up is kept with the run, as the step `call`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.engine.durable.attempt_replay import DurableRecovery
from rung.engine.durable.restored_events import changes_of
from rung.engine.loop.run import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.durable_runs import RunLease

CALL_STEP: Final = "call"


def keep_parked_run(call: Any, claim: Callable[[str], RunLease]) -> DurableRecovery | None:
    """Keep the running recovery, which is parked, with the call that takes it up. To be called by its `on_park`.

    A recovery that is not durable yet gets the lease that `claim` returns for its id, and is returned: whoever made the
    lease enters it, and finishes the recovery.
    """
    run = CURRENT.get()
    assert run is not None  # noqa: S101  # called by a recovery
    recorder = run.attempt_recorder
    if isinstance(recorder, DurableRecovery):
        recorder.lease.record(CALL_STEP, call)
        return None
    durable = _make_durable(run, claim(run.incident.id))
    durable.lease.record(CALL_STEP, call)
    return durable


def _make_durable(run: RecoveryRun, lease: RunLease) -> DurableRecovery:
    """Make a running recovery durable. Its events so far must be in the journal."""
    events = run.log[: run.published]
    lease.record_appended(events, changes_of(0, events, run.incident.first_request))
    durable = DurableRecovery(lease, run)
    run.journal = run.attempt_recorder = durable
    run.lazy_log = run.back_pressure = None  # a durable run waits for its events
    run.pending_append = None
    run.stays_open = True
    return durable
