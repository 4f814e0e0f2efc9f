"""Attributes of a run: its policy, its ports, and the state of the running attempt."""

from __future__ import annotations

from random import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.engine.ports.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain import events as ev
    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request
    from rung.core.policy.breaker import Breaker, Permit
    from rung.core.policy.budget import RetryBudget
    from rung.core.policy.policy import Policy
    from rung.core.recovery.interventions import Intervention
    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.ports.clock import Clock
    from rung.engine.ports.journal import (
        AttemptHistory,
        BackPressure,
        EventLog,
        Interventions,
        LazyEventLog,
        Remedies,
        RungStatistics,
    )
    from rung.engine.ports.recovery import (
        AttemptHooks,
        AttemptRecorder,
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
    from rung.engine.timeouts.patience import Patience

NO_RUNG_HANDLERS: Final[Mapping[str, RungHandler]] = MappingProxyType({})
NO_REPORTS: Final = float("inf")  # later than every report


class RunAttributes:
    """Attributes of a run, with their defaults.

    They are class attributes: each guarded function has a subclass of the run with its own values, so that starting a run
    creates only its incident and its event log.
    """

    policy: Policy
    terms: ev.IncidentContext
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = staticmethod(random)
    listeners: Sequence[Listener] = ()
    journal: EventLog | None = None
    lazy_log: LazyEventLog | None = None
    back_pressure: BackPressure | None = None
    interventions: Interventions | None = None
    remedies: Remedies | None = None
    statistics: RungStatistics | None = None
    history: AttemptHistory | None = None
    has_observers: bool = False  # there is a journal or a listener to publish to
    operator: Operator | None = None
    check: ResultValidator | None = None
    checkpoint: Checkpoint | None = None
    rung_handlers: Mapping[str, RungHandler] = NO_RUNG_HANDLERS
    breakers: BreakerRegistry | None = None
    breaker: Breaker | None = None  # of the running attempt
    breaker_key: str | Callable[[Request | None], str] = ""  # empty: one breaker for each model
    retry_budget: RetryBudget | None = None
    session: Session | None = None
    attempt_recorder: AttemptRecorder | None = None  # set for durable runs
    stays_open: bool = False  # a run that is stopped can be resumed later
    attempt_hooks: AttemptHooks | None = None
    on_park: Callable[[Incident], object] | None = None
    notes: Notes | None = None
    investigate: Investigator | None = None
    service_waits: ServiceWaits | None = None
    before_failure: Callable[[], None] | None = None  # called before a failure is recorded
    log_name: str = ""  # names the work in the log
    is_logged: bool = True  # False: a listener shows the recovery in its own way
    raises: bool = False  # a failure is raised to the caller
    has_heard_cost: bool = False  # an attempt has reported a cost, which may be 0
    is_hooked: bool = False  # the hooks before the running attempt have run, those after it have not

    value: Any = None
    error: Exception | None = None
    permit: Permit | None = None
    previous_decision: ev.Decision | None = None  # the decision before the active one
    began: float = 0.0
    seconds: float | None = None  # time limit of the running attempt
    patience: Patience | None = None  # with the running attempt, by the history of similar ones
    attempt_made: bool = True
    is_async: bool = False  # the attempts are coroutines
    reports_since: float = NO_REPORTS  # reports without a run since this time may belong to the running attempt
    attempt_dollars: float = 0.0  # dollars the running attempt has reported
    reported_dollars: float = 0.0  # dollars that the enclosing calls have received already
    earlier_dollars: float = 0.0  # dollars of earlier processes of this run: the enclosing runs received them then
    has_visible_effects: bool = False  # the running attempt has reported output or a side effect
    prompt_unread: bool = False  # the running attempt has read nothing of its prompt
    published: int = 0
    pending_append: Any = None  # append that is still being written
    last_append: Any = None  # append of the cancellation, still being written
    intervention: Intervention | None = None  # received from an operator, not applied yet
