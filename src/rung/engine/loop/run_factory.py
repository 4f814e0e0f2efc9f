"""Creation of runs: the attributes of a run from the keyword arguments of a recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.events import IncidentContext
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.engine.arguments import refuse_argument
from rung.engine.loop.ids import INCIDENT_IDS
from rung.engine.loop.process_state import BREAKERS, RETRY_BUDGET
from rung.engine.loop.run import RecoveryRun
from rung.engine.ports.journal import JournalPorts
from rung.engine.recovery_arguments import Ports

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy
    from rung.engine.ports.journal import Interventions

_RUN_ATTRIBUTE_PORTS: Final = (
    "clock",
    "jitter",
    "listeners",
    "check",
    "checkpoint",
    "rung_handlers",
    "session",
    "notes",
    "investigate",
    "service_waits",
    "on_park",
    "intervention",
)
_PORT_NAMES: Final = Ports.__annotations__.keys()


def request_of(prompt: str, policy: Policy) -> Request:
    """Return the request of a prompt alone: for the first model that the policy lists."""
    return Request(prompt=prompt, model=policy.models[0].name if policy.models else "")


def new_run(
    request: Request | str, policy: Policy | str, ports: Ports, name: str = "", began: float | None = None
) -> RecoveryRun:
    """Create and open a run with these ports."""
    resolved_policy = make_policy(policy) if isinstance(policy, str) else policy
    if isinstance(request, str):
        request = request_of(request, resolved_policy)
    session = ports.get("session")
    if session is not None:
        pinned = _pinned_model(JournalPorts.of(ports.get("journal")).interventions, session.id)
        if pinned:
            session.model = pinned
            request = request.replace(model=pinned)
        elif began is None:  # else the first attempt was already made, with the request as it is
            request = session.first_request(request)
    run = RecoveryRun.create(run_attributes(resolved_policy, ports, idempotent=request.idempotent))
    if began is None:
        count_call(run)
    run.open(request, run.clock.now() if began is None else began, name or ports.get("incident_id", ""))
    return run


def count_call(run: RecoveryRun) -> None:
    """Credit the retry budget with a call that begins."""
    if run.retry_budget is not None and run.retry_budget.is_below_capacity:
        run.retry_budget.credit()


def _session_id(ports: Ports) -> str:
    """Return the session id for the journal. Without a session, all recoveries of this process share one."""
    session = ports.get("session")
    if session is not None:
        return str(session.id)
    return INCIDENT_IDS.process_name if ports.get("journal") is not None else ""


def _pinned_model(interventions: Interventions | None, session: str) -> str:
    """Return the model that an operator has pinned the session to, or an empty string."""
    if interventions is None or not session:
        return ""
    try:
        return str(interventions.model_for(session))
    except Exception:  # a failing store must not prevent the call
        return ""


def run_attributes(policy: Policy, ports: Ports, *, idempotent: bool) -> dict[str, Any]:
    """Return the attributes of a run with these ports. An unknown port name raises TypeError."""
    for name in sorted(ports.keys() - _PORT_NAMES):
        refuse_argument(name, _PORT_NAMES)
    operator, key = ports.get("ask"), ports.get("key", "")
    attended = operator is not None and not policy.unattended
    journal = JournalPorts.of(ports.get("journal"))
    notes = ports.get("notes")
    listeners = (*(ports.get("listeners") or ()), *(() if notes is None else (notes,)))
    return {
        **{port: value for port, value in ports.items() if port in _RUN_ATTRIBUTE_PORTS},
        "policy": policy,
        "terms": IncidentContext(
            policy.ladder.name,
            policy.name,
            attended,
            idempotent,
            tuple(rung.name for rung in policy.ladder.rungs),
            journal.project,
            _session_id(ports),
            tuple(rung.tries for rung in policy.ladder.rungs),
        ),
        **journal.run_attributes(),
        "listeners": listeners,
        "has_observers": journal.log is not None or bool(listeners),
        "is_logged": not any(getattr(listener, "replaces_log", False) for listener in listeners),
        "operator": operator,
        "retry_budget": ports.get("retry_budget", RETRY_BUDGET) if policy.retry_budget else None,
        "breaker_key": key,
        "breakers": ports.get("breakers", BREAKERS) if policy.breaker else None,
    }
