"""Misuse of a recovery's arguments."""

from __future__ import annotations

import asyncio
import functools
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung import durable

if TYPE_CHECKING:
    from collections.abc import Iterator


class NoJournal:
    """A journal with durable runs that nobody may touch."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used before the arguments were checked")


async def later(request: rung.Request) -> str:
    return "done"


def now(request: rung.Request) -> str:
    return "done"


def pieces(request: rung.Request) -> Iterator[str]:
    yield "done"


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize(
    ("attempt", "request_", "ports", "named"),
    [
        (lambda: "done", "go", {}, "takes no argument"),
        ("now", "go", {}, "attempt: must be a function"),
        (now, {"prompt": "go"}, {}, "request: must be a rung.Request or a string, not dict"),
        (now, "go", {"journal": "x.db"}, "journal: must be a journal, such as rung.journal"),
        (now, "go", {"session": "abc"}, "session: must be a rung.Session, not str"),
        (now, "go", {"breakers": "off"}, "breakers: must be a rung.BreakerRegistry, or None for no breaker, not str"),
        (now, "go", {"check": "make test"}, "check: must be a function, not str"),
        (now, "go", {"ask": True}, "ask: must be a function, not bool"),
        (now, "go", {"journal": []}, "journal: must be a journal, such as rung.journal.PATH., not list"),
        (now, "go", {"policy": 3}, "policy: must be a rung.Policy or the name of a ladder, not int"),
        (now, "go", {"listeners": print}, "listeners: must be a list of functions, not print"),
        (now, "go", {"listeners": [1]}, "listeners: must be a list of functions, not int"),
        (now, "go", {"listeners": [later]}, "listeners: later is async; a listener is called, never awaited"),
        (
            now,
            "go",
            {"listeners": [rung.print_events]},
            "listeners: print_events cannot be called with an event and the incident",
        ),
        (
            pieces,
            "go",
            {},
            "attempt: pieces is a generator, which nothing iterates; use @rung.guarded, or return the whole result",
        ),
        (now, "go", {"rung_handlers": [now]}, "rung_handlers: must be a table of functions: .*, not list"),
        (now, "go", {"rung_handlers": {"replann": now}}, "rung_handlers: 'replann' is no action; must be one of: ask,"),
        (now, "go", {"rung_handlers": {"replan": "x"}}, "rung_handlers..replan..: must be a function, not str"),
        (now, "go", {"clock": None}, "clock: must be a clock with `now`, `sleep` and `asleep`, not NoneType"),
        (now, "go", {"clock": time.time}, "clock: must be a clock"),
        (now, "go", {"checkpoint": "git"}, "checkpoint: must be a checkpoint with `take` and `restore`, not str"),
        (now, "go", {"notes": "notes"}, "notes: must be notes of a project with `read`, and a listener, not str"),
        (now, "go", {"retry_budget": 5}, "retry_budget: must be a rung.RetryBudget, or None for no limit, not int"),
        (now, "go", {"incident_id": 5}, "incident_id: must be a string, not int"),
        (now, "go", {"key": None}, "key: must be a string or a function of the request, not NoneType"),
    ],
)
def test_misuse_is_an_error_before_anything_runs(
    attempt: Any, request_: Any, ports: dict[str, Any], named: str, blocking: bool
) -> None:
    """What cannot work is a TypeError in one line that names the argument and what is allowed."""
    made: list[str] = []

    def first(_: rung.Request) -> None:
        made.append("the first job")

    def run(blocks: Any, awaits: Any, *args: Any, **kwargs: Any) -> Any:
        return blocks(*args, **kwargs) if blocking else asyncio.run(awaits(*args, **kwargs))

    calls: list[Any] = [
        lambda: run(rung.recover_sync, rung.recover, attempt, request_, **ports),
        lambda: run(rung.gather_sync, rung.gather, (first, "go"), (attempt, request_), **ports),
    ]
    if "journal" not in ports:  # that of a durable run has an error of its own
        kept: dict[str, Any] = {"run_id": "x", "journal": NoJournal(), **ports}
        calls.append(lambda: run(durable.recover_sync, durable.recover, attempt, request_, **kept))
    for call in calls:
        with pytest.raises(TypeError, match=named) as raised:
            call()
        assert "\n" not in str(raised.value)
    assert not made


def test_an_async_attempt_is_not_a_result() -> None:
    """A coroutine function in a blocking recovery is refused, instead of returning a coroutine as a success."""
    with pytest.raises(TypeError, match="later is async; use `recover`"):
        rung.recover_sync(later, "go")
    assert rung.recover_sync(now, "go").value == "done"
    awaited: rung.Outcome[str] = asyncio.run(rung.recover(later, "go"))
    assert awaited.value == "done"


class Later:
    """An object that is called like a coroutine function."""

    async def __call__(self, *_: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize("function", [later, functools.partial(later), Later()])
@pytest.mark.parametrize("port", ["attempt", "check", "ask", "investigate", "rung_handlers"])
def test_an_async_function_is_refused_where_nothing_awaits_it(function: Any, port: str) -> None:
    """An async attempt, check, operator, investigator or planner in a blocking recovery is a TypeError."""
    attempt = function if port == "attempt" else now
    value = {"replan": function} if port == "rung_handlers" else function
    ports: dict[str, Any] = {} if port == "attempt" else {port: value}
    blocking: list[Any] = [rung.recover_sync, lambda *job, **kw: rung.gather_sync(rung.GatherJob(*job), **kw)]
    for recover in blocking:
        with pytest.raises(TypeError, match=f"{port}.* is async; use `recover`, which awaits it"):
            recover(attempt, "go", **ports)
    if port != "attempt":
        with pytest.raises(TypeError, match=f"{port}.* is async"):
            rung.guarded("call", **ports)(now)


def returns_a_coroutine() -> Any:
    return later(rung.Request())


def test_a_returned_coroutine_is_never_a_success() -> None:
    """A plain function that returns a coroutine is refused when it does: nothing would await it."""
    with pytest.raises(TypeError, match="attempt: returned a coroutine, which nothing awaits"):
        rung.recover_sync(lambda request: later(request), "go")  # noqa: PLW0108  # not a coroutine function
    for policy in ("call", rung.policy("call", seconds=None)):
        with pytest.raises(TypeError, match="returned a coroutine, which nothing awaits"):
            rung.guarded(policy, breakers=rung.BreakerRegistry())(returns_a_coroutine)()


@pytest.mark.filterwarnings("ignore:rung. check failed")
def test_a_check_that_returns_a_coroutine_accepts_nothing() -> None:
    """A check that returns a coroutine in a blocking recovery has checked nothing: the result is unverified."""
    check: Any = lambda value: later(value)  # noqa: E731, PLW0108  # not a coroutine function
    outcome = rung.recover_sync(now, "go", check=check, policy=rung.policy("call", attempts=1))
    assert not outcome.ok
    assert outcome.failure is not None
    assert outcome.failure.kind == "unverified"


@pytest.mark.parametrize("job", ["go", (now,), now])
def test_a_job_of_another_type(job: Any) -> None:
    """What is no job is refused by its number."""
    good: Any = (now, "go")
    calls: list[Any] = [lambda: rung.gather_sync(good, job), lambda: asyncio.run(rung.gather(good, job))]
    for call in calls:
        with pytest.raises(TypeError, match=r"job 1: must be a rung\.GatherJob"):
            call()


@pytest.mark.parametrize(
    ("ports", "named"),
    [
        ({"journal": "x.db"}, "journal: must be a journal"),
        ({"session": "abc"}, "session: must be a rung.Session"),
        ({"listeners": [1]}, "listeners: must be a list of functions"),
        ({"clock": 1}, "clock: must be a clock"),
        ({"polcy": 1}, "unknown argument 'polcy'; did you mean policy"),
        ({"policy": "call"}, "the first argument: @rung.guarded"),
        ({"dollars": 1}, r"a setting of the policy: rung.policy\(..., dollars=...\)"),
    ],
)
def test_a_guarded_function_is_refused_when_it_is_made(ports: dict[str, Any], named: str) -> None:
    """Misuse of `guarded` is a TypeError at the decorator, not at the first failure."""
    for function in (now, later):
        with pytest.raises(TypeError, match=named):
            rung.guarded("call", **ports)(function)


def test_a_journal_may_have_a_function_of_another_one() -> None:
    """A journal is what takes events, also if its `append` is an attribute of the object."""
    kept: list[object] = []
    journal = SimpleNamespace(append=lambda incident, first, events: kept.extend(events))
    assert rung.recover_sync(lambda _: "x", rung.Request(prompt="go"), journal=journal).value == "x"
    assert kept
