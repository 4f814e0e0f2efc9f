"""`recover` and `recover_sync`: run an attempt, recover from its failures, and return an outcome instead of raising."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from rung.engine.arguments import check_attempt, check_policy, check_ports, check_request
from rung.engine.default_journal import with_default_journal
from rung.engine.loop.run_factory import new_run
from rung.engine.loop.run_to_end import arun_to_end, finish_run, run_to_end
from rung.engine.ports.journal import StoredPolicies

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Unpack

    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.first_attempt import FirstAttempt
    from rung.engine.recovery_arguments import Ports

T = TypeVar("T")
DEFAULT_LADDER: Final = "task"


@overload
async def recover(
    attempt: Callable[[Request], Awaitable[T]],
    request: Request | str,
    *,
    policy: Policy | str | None = None,
    first: FirstAttempt | None = None,
    **ports: Unpack[Ports],
) -> Outcome[T]: ...
@overload
async def recover(
    attempt: Callable[[Request], T],
    request: Request | str,
    *,
    policy: Policy | str | None = None,
    first: FirstAttempt | None = None,
    **ports: Unpack[Ports],
) -> Outcome[T]: ...
async def recover(
    attempt: Callable[[Request], Any],
    request: Request | str,
    *,
    policy: Policy | str | None = None,
    first: FirstAttempt | None = None,
    **ports: Unpack[Ports],
) -> Outcome[Any]:
    """Attempt a request, recover from failures, and return the outcome.

    A failed attempt is classified. Then the cheapest step of the policy's ladder that can still help is taken: the same
    request again after a wait, a request that contains the error, a new plan, another model. This goes on until an attempt
    succeeds, nothing can help, or a budget of attempts, time or dollars is spent. A service that stays down is then probed for
    as long as the policy's `patience`; `attempts` does not count these probes. Failures are logged to the logger `rung`.
    The call does not raise for a failed attempt: look at `outcome.status`, or call `outcome.unwrap()`.

    Args:
        attempt: Function that makes one attempt: it takes a `rung.Request` and returns the result, or an awaitable of it. It raises if it
            fails; raise `rung.AttemptError` if it knows what went wrong.
        request: What to attempt: a `rung.Request`, or a prompt for the first of the policy's models. The recovery passes a changed request to later attempts.
        policy: `rung.Policy`, or the name of a ladder. Default: the policy of the journal's project, as set in the service or in
            rung.toml; without a journal the ladder `task`.
        first: First attempt that was already made, by `attempt_first`: recovery begins with its failure. Default: none.
        journal: Journal that records each event before the engine acts on it, from `rung.journal(PATH)`. Default: the one that
            the environment variable `RUNG_JOURNAL` names, else none; None: none.
        check: Function that validates each result: `check(value)`. It returns None or True for a good result, else False, a
            text, evidence, a failure or a verdict. A check that raises accepts nothing. Default: every result is good.
        ask: Function that answers questions: `ask(question, incident)` returns the id of an option, or None if nobody
            answers. Default: none; the recovery is unattended, and a question ends it as `blocked`.
        listeners: Functions that are called with each event: `listener(event, incident)`. See `rung.print_events`.
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

    Returns:
        The outcome: its status, the value, what was done, where it stopped and what a person should do.

    Raises:
        TypeError: An argument has the wrong type, or its name is unknown. Nothing has run then.
        ConfigError: The name of the ladder is unknown.

    Example:
        >>> import asyncio, rung
        >>> async def attempt(request: rung.Request) -> str:
        ...     return f"answer of {request.model}"
        >>> request = rung.Request(prompt="Why?", model="small")
        >>> outcome = asyncio.run(rung.recover(attempt, request, policy="call"))
        >>> outcome.status.value, outcome.value
        ('succeeded', 'answer of small')
    """
    check_call(attempt, request, policy, ports, blocking=False)
    ports = with_default_journal(ports)
    policy = chosen_policy(policy, ports.get("journal"))
    if first is None or first.error is None:
        run = new_run(request, policy, ports)
        run.log_name = work_name(attempt)
        await arun_to_end(run, attempt)
    else:
        run = new_run(request, policy, ports, began=first.began)
        run.log_name = work_name(attempt)
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
    """Attempt a request, recover from failures, and return the outcome; blocking.

    The same as `recover`, for attempts that are plain functions. A time limit interrupts the attempt, also inside a
    blocking call. Ctrl-C propagates at once.

    Args:
        attempt: Function that makes one attempt: it takes a `rung.Request` and returns the result. It raises if it
            fails; raise `rung.AttemptError` if it knows what went wrong.
        request: What to attempt: a `rung.Request`, or a prompt for the first of the policy's models. The recovery passes a changed request to later attempts.
        policy: `rung.Policy`, or the name of a ladder. Default: the policy of the journal's project, as set in the service or in
            rung.toml; without a journal the ladder `task`.
        journal: Journal that records each event before the engine acts on it, from `rung.journal(PATH)`. Default: the one that
            the environment variable `RUNG_JOURNAL` names, else none; None: none.
        check: Function that validates each result: `check(value)`. It returns None or True for a good result, else False, a
            text, evidence, a failure or a verdict. A check that raises accepts nothing. Default: every result is good.
        ask: Function that answers questions: `ask(question, incident)` returns the id of an option, or None if nobody
            answers. Default: none; the recovery is unattended, and a question ends it as `blocked`.
        listeners: Functions that are called with each event: `listener(event, incident)`. See `rung.print_events`.
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

    Returns:
        The outcome: its status, the value, what was done, where it stopped and what a person should do.

    Raises:
        TypeError: An argument has the wrong type, or its name is unknown. Nothing has run then.
        ConfigError: The name of the ladder is unknown.

    Example:
        >>> import rung
        >>> def attempt(request: rung.Request) -> str:
        ...     if "No such file" not in request.prompt:
        ...         raise FileNotFoundError(2, "No such file", "test/app.py")
        ...     return "read tests/app.py instead"  # the prompt of the second attempt contains the error
        >>> outcome = rung.recover_sync(attempt, "Read the tests")
        >>> outcome.status.value, outcome.attempts, outcome.unwrap()
        ('recovered', 2, 'read tests/app.py instead')
    """
    check_call(attempt, request, policy, ports, blocking=True)
    ports = with_default_journal(ports)
    policy = chosen_policy(policy, ports.get("journal"))
    run = new_run(request, policy, ports)
    run.log_name = work_name(attempt)
    run_to_end(run, attempt)
    return finish_run(run)


def work_name(attempt: Callable[..., Any]) -> str:
    """Return the name of an attempt in the log: its module and function, or its class."""
    named: Any = attempt if hasattr(attempt, "__qualname__") else type(attempt)
    return f"{named.__module__}.{named.__qualname__.rpartition('<locals>.')[2]}"


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
