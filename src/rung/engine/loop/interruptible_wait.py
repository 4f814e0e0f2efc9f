"""Waits of a recovery that an operator can interrupt: before a retry, for a failing service, while parked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain import events as ev
from rung.engine.loop.event_publishing import persist_and_notify
from rung.engine.loop.moves import Wait, call_port
from rung.engine.ports.journal import LastInterventions
from rung.engine.ports.recovery import ServiceWait

if TYPE_CHECKING:
    from collections.abc import Generator

    from rung.core.recovery.interventions import Intervention
    from rung.engine.loop.moves import Move, Reply
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.recovery import ServiceWaits

LAST_INTERVENTION_SECONDS: Final = 2.0  # that an incident waits for its journal before it ends
INTERVENTION_POLL_SECONDS: Final = 0.5  # interval at which a waiting recovery polls for an intervention
PARKED_POLL_SECONDS: Final = 2.0  # work may be parked for days
SERVICE_POLL_SECONDS: Final = 2.0  # thousands of calls may wait for a service


def wait_before_repeat(run: RecoveryRun, decision: ev.Repeat) -> Generator[Move, Reply, bool]:
    """Wait before the request is repeated. Return True if an intervention of an operator closes the incident."""
    if decision.until is not None and not decision.parked and run.service_waits is not None:
        return (yield from _wait_for_service(run, run.service_waits, decision.wait, decision.until))
    if decision.wait > 0 or run.interventions is not None:
        return (yield from wait_before_attempt(run, decision.wait))
    return False


def _wait_for_service(
    run: RecoveryRun, waits: ServiceWaits, seconds: float, until: float
) -> Generator[Move, Reply, bool]:
    """Wait for a failing service together with other calls, or until an operator intervenes."""
    now = run.clock.now()
    probed = run.breaker if run.permit is not None and run.permit.probe and run.attempt_made else None
    key = run.select_breaker()
    has_probed = probed is not None and probed is run.breaker
    waiting = ServiceWait(key, now, now + seconds, until, run.incident.opened_at, has_probed)
    while True:
        closes = yield from take_intervention(run)
        if closes is not None:
            return closes
        is_ready, _ = yield from call_port(run, "service_waits", waits.wait, waiting, SERVICE_POLL_SECONDS)
        if is_ready is not False:  # a failed port does not keep the call from its attempt
            return False


def wait_before_attempt(run: RecoveryRun, seconds: float) -> Generator[Move, Reply, bool]:
    """Wait before a repeated attempt, and record that parked work is taken up. Return True if the incident is closed."""
    is_parked = run.incident.parked_until is not None
    if is_parked and seconds > 0 and run.on_park is not None:
        yield from call_port(run, "on_park", run.on_park, run.incident)
    over = yield from wait_interruptible(run, seconds, PARKED_POLL_SECONDS if is_parked else INTERVENTION_POLL_SECONDS)
    if is_parked and not over:
        run.append(ev.Unparked(run.clock.now()))
    return over


def wait_interruptible(
    run: RecoveryRun, seconds: float, poll_seconds: float = INTERVENTION_POLL_SECONDS
) -> Generator[Move, Reply, bool]:
    """Wait for `seconds`, or until an operator intervenes. Return True if the intervention closes the incident."""
    if run.interventions is None:
        if seconds > 0:
            yield Wait(seconds)
        return False
    until = run.clock.now() + seconds
    while True:
        closes = yield from take_intervention(run)
        if closes is not None:
            return closes
        left = until - run.clock.now()
        if left <= 0:
            return False
        yield Wait(min(left, poll_seconds))


def take_intervention(run: RecoveryRun) -> Generator[Move, Reply, bool | None]:
    """Apply a pending intervention of an operator. Return whether it closes the incident; None if there is none."""
    intervention, run.intervention = run.intervention, None
    if intervention is None and run.interventions is not None:
        arguments = (run.interventions.intervention, run.incident.id)
        intervention, _ = yield from call_port(run, "interventions", *arguments)
    if intervention is None:
        return None
    closes = _apply_intervention(run, intervention)
    yield from persist_and_notify(run)
    return closes


def take_last_intervention(run: RecoveryRun) -> Generator[Move, Reply, bool | None]:
    """Apply an intervention that came during the last attempt, before the incident ends. Return as `take_intervention`."""
    source: object = run.interventions
    if not isinstance(source, LastInterventions):
        return None
    intervention, _ = yield from call_port(
        run, "interventions", source.last_intervention, run.incident.id, seconds=LAST_INTERVENTION_SECONDS
    )
    if intervention is None:
        return None
    run.intervention = intervention
    return (yield from take_intervention(run))


def _apply_intervention(run: RecoveryRun, intervention: Intervention) -> bool:
    """Record and apply an intervention of an operator. Return True if it closes the incident."""
    from rung.core.recovery.interventions import InterventionType

    now, before = run.clock.now(), run.incident.request
    run.append(ev.Ordered(now, intervention.action.value, intervention.by, intervention.model, intervention.prompt))
    if intervention.action is InterventionType.CANCEL:
        run.close(
            ev.Finish(max(run.incident.rung, 0), ev.Status.PARTIAL, f"stopped by {intervention.by or 'a person'}")
        )
        return True
    if before is not None:
        after = intervention.apply_to(before)
        if after != before:
            run.append(ev.Changed(now, after, after.digest(), before.changed(after), "order"))
    return False
