"""`recover` and `recover_sync`: run an attempt, recover from its failures, and return an outcome instead of raising."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from rung.core.domain.events import IncidentContext, Status
from rung.core.domain.outcome import report_text
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.engine.arguments import check_attempt, check_policy, check_ports, check_request
from rung.engine.loop.attempt_hooks import aafter_stop, after_stop, use_hooks
from rung.engine.loop.drivers import adrive, drive
from rung.engine.loop.ids import INCIDENT_IDS
from rung.engine.loop.process_state import BREAKERS, RETRY_BUDGET
from rung.engine.loop.recovery_steps import recovery
from rung.engine.loop.run import CURRENT, RecoveryRun
from rung.engine.ports import JournalPorts, StoredPolicies

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Unpack

    from rung.core.domain.events import Decision
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.budget import RetryBudget
    from rung.core.policy.policy import Policy
    from rung.core.recovery.interventions import Intervention
    from rung.engine.first_attempt import FirstAttempt
    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.ports import (
        Checkpoint,
        Clock,
        EventLog,
        Interventions,
        Investigator,
        Listener,
        Notes,
        Operator,
        ResultValidator,
        RungHandler,
        ServiceWaits,
    )
    from rung.engine.session import Session

T = TypeVar("T")
LAST_EVENT_TIMEOUT_SECONDS: Final = 2.0
DEFAULT_LADDER: Final = "task"
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


class RunPorts(TypedDict, total=False):
    """Optional arguments of a recovery, besides the journal.

    check         validates each result: returns None if it is good, else evidence or a verdict
    ask           answers questions; without it the recovery runs unattended
    listeners     are called for each event
    rung_handlers functions that make a rung's new request, by action: {"replan": plan, "compact": shrink}
    investigate   finds the root cause before a new plan or a handover: (request, incident) -> text
    checkpoint    saves and restores the state of the work
    notes         notes of the project: read before the run and for new plans, added to at its end
    session       carries the model and the per-session rung counts from call to call
    key           breaker key, or a function of the request; default: the model of each request, if it has one
    breakers      breaker registry; default: the one shared by the process; None: no circuit breaker
    retry_budget  retry budget; default: the one shared by the process; None: no limit on the retries of all calls together
    service_waits lets the calls that wait for a failing service share its probes; default: each call sends its own
    on_park       is called with the incident when it is parked until a limit reopens, before it waits
    incident_id   id of the incident; default: a new one
    intervention  what a person asks of the first attempt: another model, another prompt. The incident keeps the request
                  as it was given
    clock, jitter sources of time and randomness, for tests
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
    """Optional arguments of a recovery. `journal` persists each event before the engine acts on it."""

    journal: EventLog | None


async def recover(
    attempt: Callable[[Request], Awaitable[T] | T],
    request: Request | str,
    *,
    policy: Policy | str | None = None,
    first: FirstAttempt | None = None,
    **ports: Unpack[Ports],
) -> Outcome[T]:
    """Attempt the request and recover on the policy's ladder. See `Ports` for the keyword arguments.

    Without a policy, that of the journal's project holds, as set in the service or in rung.toml; else the ladder `task`.
    With `first`, a first attempt made by `attempt_first`, recovery begins with that attempt's failure. For a recovery
    that survives its process, see `rung.durable.recover`.
    """
    check_call(attempt, request, policy, ports, blocking=False)
    policy = chosen_policy(policy, ports.get("journal"))
    if first is None or first.error is None:
        run = new_run(request, policy, ports)
        await arun_to_end(run, attempt)
    else:
        run = new_run(request, policy, ports, began=first.began)
        run.select_breaker()
        run.attempt_dollars = first.dollars
        failure = run.record_error(first.error)
        await arun_to_end(run, attempt, failure, run.decide(failure))
    return finish_run(run)


def recover_sync(
    attempt: Callable[[Request], T],
    request: Request | str,
    *,
    policy: Policy | str | None = None,
    **ports: Unpack[Ports],
) -> Outcome[T]:
    """Attempt the request and recover, blocking. Ctrl-C propagates at once and carries the outcome so far."""
    check_call(attempt, request, policy, ports, blocking=True)
    policy = chosen_policy(policy, ports.get("journal"))
    run = new_run(request, policy, ports)
    run_to_end(run, attempt)
    return finish_run(run)


def chosen_policy(policy: Policy | str | None, journal: object) -> Policy | str:
    """Return the caller's policy; else that of the journal's project, or the ladder `task`."""
    if policy is not None:
        return policy
    stored = journal.stored_policy() if isinstance(journal, StoredPolicies) else None
    return DEFAULT_LADDER if stored is None else stored


def check_call(attempt: Any, request: Any, policy: Any, ports: Mapping[str, Any], *, blocking: bool) -> None:
    """Refuse misuse of a recovery's arguments with a TypeError, before anything runs."""
    check_attempt(attempt, blocking=blocking)
    check_request(request)
    if policy is not None:
        check_policy(policy)
    check_ports(ports, blocking=blocking)


def run_to_end(
    run: RecoveryRun,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
) -> None:
    """Drive a run to its end, from its start or from a failure and the decision about it."""
    outer = CURRENT.get()
    use_hooks(run, attempt)
    try:
        CURRENT.set(run)  # inside the try: the timeout of an outer attempt can strike at any call
        drive(run, recovery(run, failure, decision, wait), attempt)
    except BaseException as error:
        run.record_cancelled()  # does nothing if the steps have already recorded it
        _flush_last_event(run)
        attach_outcome(error, run)
        after_stop(run, error)
        raise
    finally:
        CURRENT.set(outer)


async def arun_to_end(
    run: RecoveryRun,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
) -> None:
    """Drive a run to its end, awaiting."""
    run.is_async = is_driven = True
    outer = CURRENT.get()
    use_hooks(run, attempt)
    try:
        CURRENT.set(run)
        await adrive(run, recovery(run, failure, decision, wait), attempt)
    except GeneratorExit:  # the coroutine was dropped: nothing can be awaited, and the context may be another one
        is_driven = False
        run.record_cancelled()
        if hasattr(run.last_append, "close"):
            run.last_append.close()
        raise
    except BaseException as error:
        run.record_cancelled()
        await _aflush_last_event(run)
        attach_outcome(error, run)
        await aafter_stop(run, error)
        raise
    finally:
        if is_driven:
            CURRENT.set(outer)


def attach_outcome(error: BaseException, run: RecoveryRun) -> None:
    """Give the outcome so far to whoever catches the error that stopped the run."""
    with suppress(Exception):  # a third-party class may refuse
        error.__dict__["__rung_outcome__"] = run.outcome()


_PORT_NAMES: Final = Ports.__annotations__.keys()


def new_run(
    request: Request | str, policy: Policy | str, ports: Ports, name: str = "", began: float | None = None
) -> RecoveryRun:
    """Create and open a run with these ports."""
    if isinstance(request, str):
        request = Request(prompt=request)
    session = ports.get("session")
    if session is not None:
        pinned = _pinned_model(JournalPorts.of(ports.get("journal")).interventions, session.id)
        if pinned:
            session.model = pinned
            request = request.replace(model=pinned)
        elif began is None:  # else the first attempt was already made, with the request as it is
            request = session.first_request(request)
    run = RecoveryRun()
    resolved_policy = make_policy(policy) if isinstance(policy, str) else policy
    run.__dict__.update(run_attributes(resolved_policy, ports, idempotent=request.idempotent))
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
    unknown = sorted(ports.keys() - _PORT_NAMES)
    if unknown:
        allowed = ", ".join(_PORT_NAMES)
        raise TypeError(f"unknown argument {unknown[0]!r}; must be one of: {allowed}")
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
        "journal": journal.log,
        "back_pressure": journal.back_pressure,
        "interventions": journal.interventions,
        "remedies": journal.remedies,
        "statistics": journal.statistics,
        "history": journal.history,
        "listeners": listeners,
        "has_observers": journal.log is not None or bool(listeners),
        "operator": operator,
        "retry_budget": ports.get("retry_budget", RETRY_BUDGET) if policy.retry_budget else None,
        "breaker_key": key,
        "breakers": ports.get("breakers", BREAKERS) if policy.breaker else None,
    }


def finish_run(run: RecoveryRun) -> Outcome[Any]:
    """Return the outcome of a run. A blocked run also appends to the policy's report file."""
    outcome = run.outcome()
    run.error = None  # its traceback references the frames that reference the run: a reference cycle
    if outcome.status is Status.BLOCKED and run.policy.report:
        try:
            _append_report(run.policy, outcome)
        except OSError as error:
            run.record_crash("report", error)
    return outcome


def _append_report(policy: Policy, outcome: Outcome[Any]) -> None:
    """Append a report of the attempts, the failures and the options to the policy's file.

    A link below the working directory is not followed: a cloned repository could lead the report to any of the user's files.
    """
    import os.path
    from pathlib import Path

    from rung.core.text.printable import printable

    target = Path(policy.report)
    expected = os.path.normpath(Path.cwd().resolve() / target)
    if not target.is_absolute() and os.path.realpath(expected) != expected:
        raise OSError(f"{target}: not written, because a link leads to another place")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        file.write(printable(report_text(outcome, policy.ladder)))


def _flush_last_event(run: RecoveryRun) -> None:
    """Wait briefly until the last event is persisted. The caller is being stopped, so the wait is bounded."""
    append = run.last_append
    if not hasattr(append, "add_done_callback"):
        return
    try:
        error = append.exception(LAST_EVENT_TIMEOUT_SECONDS)
    except Exception as late:  # timed out, or cancelled
        error = late
    _record_journal_error(run, error)


async def _aflush_last_event(run: RecoveryRun) -> None:
    """Await the persistence of the last event, bounded. A second cancellation ends the wait, not the write."""
    import asyncio

    append = run.last_append
    if not hasattr(append, "__await__"):
        return
    writing = asyncio.ensure_future(append)
    await asyncio.wait({writing}, timeout=LAST_EVENT_TIMEOUT_SECONDS)
    finished = writing.done() and not writing.cancelled()
    _record_journal_error(
        run,
        writing.exception() if finished else TimeoutError(f"append timed out after {LAST_EVENT_TIMEOUT_SECONDS:g} s"),
    )


def _record_journal_error(run: RecoveryRun, error: BaseException | None) -> None:
    if isinstance(error, Exception):
        run.record_crash("journal", error)
