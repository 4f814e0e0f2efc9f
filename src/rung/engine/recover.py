"""`recover` and `recover_sync`: an attempt and a request in, an honest outcome out. Never raises for a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from rung.core.domain.events import IncidentContext, Status
from rung.core.domain.outcome import report_text
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.engine.loop.drivers import adrive, drive
from rung.engine.loop.ids import NUMBERS
from rung.engine.loop.process_state import BREAKERS, RETRY_BUDGET
from rung.engine.loop.recovery_steps import recovery
from rung.engine.loop.run import CURRENT, RecoveryRun
from rung.engine.ports import JournalPorts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Unpack

    from rung.core.domain.events import Decision
    from rung.core.domain.failures import Failure
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.budget import RetryBudget
    from rung.core.policy.policy import Policy
    from rung.engine.first_attempt import FirstAttempt
    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.ports import (
        Checkpoint,
        Clock,
        EventLog,
        Interventions,
        Listener,
        Operator,
        ResultValidator,
        RungHandler,
    )
    from rung.engine.session import Session

T = TypeVar("T")
PARTING: Final = 2.0
_PLAIN: Final = ("clock", "jitter", "listeners", "check", "checkpoint", "changes", "session")


class RunPorts(TypedDict, total=False):
    """Optional arguments of a recovery, besides the journal.

    check         looks at each result: None when good, else evidence or a verdict
    ask           answers questions; without it nobody is there
    listeners     are told every event
    changes       own ways to make a rung's new request, by action: {"replan": plan, "compact": shrink}
    checkpoint    keeps and restores the state of the work
    session       carries the model, and rungs that count per session, from call to call
    key           the breaker's key, or a function of the request; default: the model of each request, where it has one
    breakers      the breakers to use; default: the process's
    retry_budget  the retry budget to use; default: the process's
    incident_id   the id of the incident; default: a new one
    clock, jitter time and chance, for tests
    """

    check: ResultValidator | None
    ask: Operator | None
    listeners: Sequence[Listener]
    changes: Mapping[str, RungHandler]
    checkpoint: Checkpoint | None
    session: Session | None
    key: str | Callable[[Request | None], str]
    breakers: BreakerRegistry
    retry_budget: RetryBudget | None
    incident_id: str
    clock: Clock
    jitter: Callable[[], float]


class Ports(RunPorts, total=False):
    """Optional arguments of a recovery. `journal` keeps the events, before anything is done about them."""

    journal: EventLog | None


async def recover(
    attempt: Callable[[Request], Awaitable[T] | T],
    request: Request | str,
    *,
    policy: Policy | str = "task",
    first: FirstAttempt | None = None,
    **ports: Unpack[Ports],
) -> Outcome[T]:
    """Attempt the request and recover on the policy's ladder. See `Ports` for the keyword arguments.

    With `first`, a first attempt made by `attempt_first`, recovery begins with that attempt's failure. For a recovery
    that survives its process, see `rung.durable.recover`.
    """
    if first is None or first.error is None:
        run = new_run(request, policy, ports)
        await arun_to_end(run, attempt)
    else:
        run = new_run(request, policy, ports, began=first.began)
        run.select_breaker()
        failure = run.failed(first.error)
        await arun_to_end(run, attempt, failure, run.decide(failure))
    return finish_run(run)


def recover_sync(
    attempt: Callable[[Request], T], request: Request | str, *, policy: Policy | str = "task", **ports: Unpack[Ports]
) -> Outcome[T]:
    """Attempt the request and recover, blocking. Ctrl-C passes through at once, carrying the outcome so far."""
    run = new_run(request, policy, ports)
    run_to_end(run, attempt)
    return finish_run(run)


def run_to_end(
    run: RecoveryRun,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
) -> None:
    """Take a run to its end, from its beginning or from a failure and the decision about it."""
    outer = CURRENT.get()
    try:
        CURRENT.set(run)  # in here: an outer attempt's time can be up at any call
        drive(run, recovery(run, failure, decision, wait), attempt)
    except BaseException as error:
        run.stopped()  # unless the steps have already recorded that
        _flush_last_event(run)
        error.__dict__["__rung_outcome__"] = run.outcome()
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
    """Take a run to its end, awaiting."""
    run.awaited = driven = True
    outer = CURRENT.get()
    try:
        CURRENT.set(run)
        await adrive(run, recovery(run, failure, decision, wait), attempt)
    except GeneratorExit:  # nobody drives us any more, nothing can be awaited, and this may be any context
        driven = False
        run.stopped()
        if hasattr(run.last_word, "close"):
            run.last_word.close()
        raise
    except BaseException as error:
        run.stopped()  # as above
        await _aflush_last_event(run)
        error.__dict__["__rung_outcome__"] = run.outcome()
        raise
    finally:
        if driven:
            CURRENT.set(outer)


_ALLOWED: Final = Ports.__annotations__.keys()


def new_run(
    request: Request | str, policy: Policy | str, ports: Ports, name: str = "", began: float | None = None
) -> RecoveryRun:
    """A run, opened, with its ports in place."""
    if isinstance(request, str):
        request = Request(prompt=request)
    session = ports.get("session")
    if session is not None:
        ordered = _ordered(JournalPorts.of(ports.get("journal")).interventions, session.id)
        session.model = ordered or session.model or request.model
        request = request.replace(model=session.model)
    run = RecoveryRun()
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    run.__dict__.update(run_attributes(chosen, ports, idempotent=request.idempotent))
    run.open(request, run.clock.now() if began is None else began, name or ports.get("incident_id", ""))
    return run


def _session(ports: Ports) -> str:
    """What the journal calls the session; where none is given, all recoveries of this process are one."""
    session = ports.get("session")
    if session is not None:
        return str(session.id)
    return NUMBERS.process if ports.get("journal") is not None else ""


def _ordered(interventions: Interventions | None, session: str) -> str:
    """The model that a person has put the session on; empty when there is none."""
    if interventions is None or not session:
        return ""
    try:
        return str(interventions.model_for(session))
    except Exception:  # a store in trouble must not stand in the way
        return ""


def run_attributes(policy: Policy, ports: Ports, *, idempotent: bool) -> dict[str, Any]:
    """The attributes of a run with these ports; a name that is none is a mistake of the caller's."""
    unknown = sorted(ports.keys() - _ALLOWED)
    if unknown:
        allowed = ", ".join(_ALLOWED)
        raise TypeError(f"unknown argument {unknown[0]!r}: allowed are {allowed}")
    asker, key = ports.get("ask"), ports.get("key", "")
    attended = asker is not None and not policy.unattended
    journal = JournalPorts.of(ports.get("journal"))
    return {
        **{port: value for port, value in ports.items() if port in _PLAIN},
        "policy": policy,
        "terms": IncidentContext(
            policy.ladder.name,
            policy.name,
            attended,
            idempotent,
            tuple(rung.name for rung in policy.ladder.rungs),
            journal.project,
            _session(ports),
        ),
        "journal": journal.log,
        "interventions": journal.interventions,
        "remedies": journal.remedies,
        "observed": journal.log is not None or bool(ports.get("listeners")),
        "asker": asker,
        "retry_budget": ports.get("retry_budget", RETRY_BUDGET),
        "breaker_key": key,
        "breakers": ports.get("breakers", BREAKERS),
    }


def finish_run(run: RecoveryRun) -> Outcome[Any]:
    """The outcome; one that is blocked leaves a report for whoever finds it."""
    outcome = run.outcome()
    run.error = None  # its traceback holds the frames that hold the run: a cycle
    if outcome.status is Status.BLOCKED and run.policy.report:
        try:
            _append_report(run.policy, outcome)
        except OSError as error:
            run.crashed("report", error)
    return outcome


def _append_report(policy: Policy, outcome: Outcome[Any]) -> None:
    """Append to the policy's file what was tried, why it failed, and what a person may choose."""
    from pathlib import Path

    target = Path(policy.report)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        file.write(report_text(outcome, policy.ladder))


def _flush_last_event(run: RecoveryRun) -> None:
    """Wait for the last word to be kept, but not for ever: whoever stopped us wants to go."""
    word = run.last_word
    if not hasattr(word, "add_done_callback"):
        return
    try:
        error = word.exception(PARTING)
    except Exception as late:  # too slow, or given up
        error = late
    _not_kept(run, error)


async def _aflush_last_event(run: RecoveryRun) -> None:
    """The same, awaiting; a second cancellation ends the waiting, not the keeping."""
    import asyncio

    word = run.last_word
    if not hasattr(word, "__await__"):
        return
    keeping = asyncio.ensure_future(word)
    await asyncio.wait({keeping}, timeout=PARTING)
    kept = keeping.done() and not keeping.cancelled()
    _not_kept(run, keeping.exception() if kept else TimeoutError(f"it took more than {PARTING:g} s"))


def _not_kept(run: RecoveryRun, error: BaseException | None) -> None:
    if isinstance(error, Exception):
        run.crashed("journal", error)
