"""Keyword arguments of the functions that recover, as typed dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.policy.budget import RetryBudget
    from rung.core.recovery.interventions import Intervention
    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.ports.clock import Clock
    from rung.engine.ports.journal import EventLog
    from rung.engine.ports.recovery import (
        Checkpoint,
        Investigator,
        Listener,
        Notes,
        Operator,
        ResultValidator,
        RungHandler,
        ServiceWaits,
    )
    from rung.engine.session import Session


class RunPorts(TypedDict, total=False):
    """Keyword arguments of a recovery, besides the journal. All are optional.

    Attributes:
        check: Function that validates each result: `check(value)`. It returns None or True for a good result, else False, a
            text, evidence, a failure or a verdict. A check that raises accepts nothing. Default: every result is good.
        ask: Function that answers questions: `ask(question, incident)` returns the id of an option, or None if nobody
            answers. Default: none; the recovery is unattended, and a question ends it as `blocked`.
        listeners: Functions that are called with each event: `listener(event, incident)`. `rung.print_events()` makes one.
            Default: none. Their errors are recorded and ignored.
        session: `rung.Session` that carries the model and the tries of session rungs from call to call. Default: none.
        rung_handlers: Functions that make a rung's new request, by action: `{"replan": plan, "compact": shrink}`, each called
            with the request and the incident. Default: Rung's own prompts.
        investigate: Function that finds the root cause before a new plan or a handover: `investigate(request, incident)`
            returns a text. Default: none.
        checkpoint: Object that saves and restores the state of the work (`take`, `restore`). Default: none.
        notes: Notes of the project: read before the run and for new plans, added to at its end. Default: none.
        key: Name of the circuit breaker, or a function of the request that returns it. Default: the model of each request, if it has one.
        breakers: `rung.BreakerRegistry` with the circuit breakers. Default: the one of the process; None: no breaker.
        retry_budget: `rung.RetryBudget` that limits the retries of all calls together. Default: the one of the process;
            None: no limit.
        service_waits: Object that lets the calls that wait for a failing service share its probes. Default: each call sends
            its own.
        on_park: Function that is called with the incident when it is parked until a limit reopens. Default: none.
        incident_id: Id of the incident. Default: a new one.
        intervention: What a person asks of the first attempt, such as another model. The incident keeps the request as it was
            given. Default: nothing.
        clock: Source of time, such as `rung.testing.FakeClock()` in tests. Default: the system's clock.
        jitter: Function that returns a random number from 0 to 1, for tests. Default: `random.random`.
    """

    check: ResultValidator | None
    ask: Operator | None
    listeners: Sequence[Listener]
    rung_handlers: Mapping[str, RungHandler]
    investigate: Investigator | None
    checkpoint: Checkpoint | None
    notes: Notes | None
    session: Session | None
    key: str | Callable[[Request | None], str]
    breakers: BreakerRegistry | None
    retry_budget: RetryBudget | None
    service_waits: ServiceWaits | None
    on_park: Callable[[Incident], object] | None
    incident_id: str
    intervention: Intervention | None
    clock: Clock
    jitter: Callable[[], float]


class Ports(RunPorts, total=False):
    """Keyword arguments of `rung.recover`, `rung.recover_sync`, `rung.guarded` and `rung.gather`. All are optional.

    Use it to annotate functions that pass them on: `def ask(**ports: Unpack[rung.types.Ports])`. `rung.recover` describes
    each of them.

    Attributes:
        journal: Journal that records each event before the engine acts on it. None: none.
    """

    journal: EventLog | None
