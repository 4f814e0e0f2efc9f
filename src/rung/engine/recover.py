"""`recover` and `recover_sync`: an attempt and a request in, an honest outcome out. Never raises for a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from rung.core.config import policy as make_policy
from rung.core.events import Status, Terms
from rung.core.request import Request
from rung.engine.kept import Rest, arepeat, repeat
from rung.engine.loops import adrive, drive
from rung.engine.numbers import NUMBERS
from rung.engine.report import write_report
from rung.engine.run import CURRENT, Run
from rung.engine.shared import BREAKERS, RETRY_BUDGET
from rung.engine.step import recovery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from rung.core.budget import RetryBudget
    from rung.core.events import Decision
    from rung.core.failures import Failure
    from rung.core.outcome import Outcome
    from rung.core.policy import Policy
    from rung.engine.first_attempt import FirstAttempt
    from rung.engine.ports import Asker, Changer, Check, Checkpoint, Clock, Journal, Listener
    from rung.engine.session import Session
    from rung.engine.shared import Breakers

T = TypeVar("T")
PARTING: Final = 2.0
_PLAIN: Final = ("clock", "jitter", "listeners", "journal", "check", "checkpoint", "changes", "session")


class Ports(TypedDict, total=False):
    """What can be given to a recovery besides the attempt, the request and the policy.

    check         looks at each result: None when good, else evidence or a verdict
    ask           answers questions; without it nobody is there
    listeners     are told every event
    changes       own ways to make a rung's new request, by action: {"replan": plan, "compact": shrink}
    checkpoint    keeps and restores the state of the work
    journal       keeps the events, before anything is done about them
    session       carries the model, and rungs that count per session, from call to call
    key           the breaker's key, or a function of the request; default: the model of each request, where it has one
    breakers      the breakers to use; default: the process's
    retry_budget  the retry budget to use; default: the process's
    incident_id   the id of the incident; default: a new one
    clock, jitter time and chance, for tests
    """

    check: Check | None
    ask: Asker | None
    listeners: Sequence[Listener]
    changes: Mapping[str, Changer]
    checkpoint: Checkpoint | None
    journal: Journal | None
    session: Session | None
    key: str | Callable[[Request | None], str]
    breakers: Breakers
    retry_budget: RetryBudget | None
    incident_id: str
    clock: Clock
    jitter: Callable[[], float]


async def recover(
    attempt: Callable[[Request], Awaitable[T] | T],
    request: Request | str,
    *,
    policy: Policy | str = "task",
    first: FirstAttempt | None = None,
    **ports: Any,
) -> Outcome[T]:
    """Attempt the request and recover on the policy's ladder. See `Ports` for the keyword arguments.

    With a `run_id` and a journal it survives its process: called again, it goes on where it was cut off. With
    `first`, a first attempt made by `attempt_first`, recovery begins with that attempt's failure.
    """
    if "run_id" in ports:
        from rung.engine.durable import recover_by_id

        return await recover_by_id(attempt, request, policy, ports)
    if first is None or first.error is None:
        run = prepare(request, policy, ports)
        await acarry(run, attempt)
    else:
        run = prepare(request, policy, ports, began=first.began)
        run.select_breaker()
        failure = run.failed(first.error)
        await acarry(run, attempt, failure, run.decide(failure))
    return ended(run)


def recover_sync(
    attempt: Callable[[Request], T], request: Request | str, *, policy: Policy | str = "task", **ports: Any
) -> Outcome[T]:
    """The same, blocking. Ctrl-C passes through at once, carrying the outcome so far."""
    if "run_id" in ports:
        from rung.engine.durable import recover_by_id_sync

        return recover_by_id_sync(attempt, request, policy, ports)
    run = prepare(request, policy, ports)
    carry(run, attempt)
    return ended(run)


def carry(
    run: Run,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
    *,
    simple: bool = False,
) -> None:
    """Take a run to its end, from its beginning or from a failure and the decision about it.

    `simple`: a first repeat was decided on, and nothing is there that would see each step.
    """
    token = CURRENT.set(run)
    try:
        rest = repeat(run, attempt) if simple else Rest(failure, decision, wait)
        if rest is not None:
            drive(recovery(run, *rest), attempt, run.clock)
    except BaseException as error:
        run.stopped()  # unless the steps have already said so
        _part(run)
        error.__dict__["__rung_outcome__"] = run.outcome()
        raise
    finally:
        CURRENT.reset(token)


async def acarry(
    run: Run,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
    *,
    simple: bool = False,
) -> None:
    """The same, awaiting."""
    run.awaited = driven = True
    token = CURRENT.set(run)
    try:
        rest = await arepeat(run, attempt) if simple else Rest(failure, decision, wait)
        if rest is not None:
            await adrive(recovery(run, *rest), attempt, run.clock)
    except GeneratorExit:  # nobody drives us any more, nothing can be awaited, and this may be any context
        driven = False
        run.stopped()
        if hasattr(run.last_word, "close"):
            run.last_word.close()
        raise
    except BaseException as error:
        run.stopped()  # as above
        await _apart(run)
        error.__dict__["__rung_outcome__"] = run.outcome()
        raise
    finally:
        if driven:
            CURRENT.reset(token)


def prepare(
    request: Request | str, policy: Policy | str, ports: Mapping[str, Any], name: str = "", began: float | None = None
) -> Run:
    """A run, opened, with its ports in place."""
    if isinstance(request, str):
        request = Request(prompt=request)
    session = ports.get("session")
    if session is not None:
        session.model = _ordered(ports.get("journal"), session.id) or session.model or request.model
        request = request.but(model=session.model)
    run = Run()
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    run.__dict__.update(equipment(chosen, ports, idempotent=request.idempotent))
    run.open(request, run.clock.now() if began is None else began, name or ports.get("incident_id", ""))
    return run


def _session(ports: Mapping[str, Any]) -> str:
    """What the journal calls the session; where none is given, all recoveries of this process are one."""
    session = ports.get("session")
    if session is not None:
        return str(session.id)
    return NUMBERS.process if ports.get("journal") is not None else ""


def _ordered(journal: Any, session: str) -> str:
    """The model a person has put the session on, where the journal knows of one."""
    look = getattr(journal, "model_for", None)
    if look is None or not session:
        return ""
    try:
        return str(look(session))
    except Exception:  # a store in trouble must not stand in the way
        return ""


def equipment(policy: Policy, ports: Mapping[str, Any], *, idempotent: bool) -> dict[str, Any]:
    """The attributes of a run with these ports; a name that is none is a mistake of the caller's."""
    unknown = sorted(set(ports) - set(Ports.__annotations__))
    if unknown:
        allowed = ", ".join(Ports.__annotations__)
        raise TypeError(f"unknown argument {unknown[0]!r}: allowed are {allowed}")
    asker, key = ports.get("ask"), ports.get("key", "")
    attended = asker is not None and not policy.unattended
    return {
        **{port: ports[port] for port in _PLAIN if port in ports},
        "policy": policy,
        "terms": Terms(
            policy.ladder.name,
            policy.name,
            attended,
            idempotent,
            tuple(rung.name for rung in policy.ladder.rungs),
            getattr(ports.get("journal"), "project", ""),
            _session(ports),
        ),
        "asker": asker,
        "retry_budget": ports.get("retry_budget", RETRY_BUDGET),
        "breaker_key": key,
        "breakers": ports.get("breakers", BREAKERS),
    }


def ended(run: Run) -> Outcome[Any]:
    """The outcome; one that is blocked leaves a report for whoever finds it."""
    outcome = run.outcome()
    run.error = None  # its traceback holds the frames that hold the run: a cycle
    if outcome.status is Status.BLOCKED:
        try:
            write_report(run.policy.report, outcome, run.policy.ladder)
        except OSError as error:
            run.crashed("report", error)
    return outcome


def _part(run: Run) -> None:
    """Wait for the last word to be kept, but not for ever: whoever stopped us wants to go."""
    word = run.last_word
    if not hasattr(word, "add_done_callback"):
        return
    try:
        error = word.exception(PARTING)
    except Exception as late:  # too slow, or given up
        error = late
    _not_kept(run, error)


async def _apart(run: Run) -> None:
    """The same, awaiting; a second cancellation ends the waiting, not the keeping."""
    import asyncio

    word = run.last_word
    if not hasattr(word, "__await__"):
        return
    keeping = asyncio.ensure_future(word)
    await asyncio.wait({keeping}, timeout=PARTING)
    kept = keeping.done() and not keeping.cancelled()
    _not_kept(run, keeping.exception() if kept else TimeoutError(f"it took more than {PARTING:g} s"))


def _not_kept(run: Run, error: BaseException | None) -> None:
    if isinstance(error, Exception):
        run.crashed("journal", error)
