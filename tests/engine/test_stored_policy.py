"""Recoveries without a policy of their own have that of their journal's project, from the first call on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.store.settings import put_setting
from rung.testing import FakeClock
from rung.wiring.policies import PolicyStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

STORED = {"retries": 1, "patience": 0, "ladder": "call"}


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    monkeypatch.chdir(tmp_path)
    with rung.journal(tmp_path / "journal.db", project="web") as opened:
        yield opened


class Failing:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: rung.Request) -> str:
        self.calls += 1
        raise rung.AttemptError("boom", status=500)


def ports(journal: Any) -> dict[str, Any]:
    return {"journal": journal, "clock": FakeClock(), "breakers": None, "retry_budget": None}


@pytest.mark.parametrize("name", ["policy", "policy/web"])
def test_a_stored_policy_holds_from_the_first_call(journal: Journal, name: str) -> None:
    """A policy set in the service, by default or for the project, holds where the caller names none."""
    put_setting(journal, name, STORED, "ada")
    attempt = Failing()
    rung.recover_sync(attempt, "x", **ports(journal))
    assert attempt.calls == 2
    asyncio.run(rung.recover(attempt, "x", **ports(journal)))
    assert attempt.calls == 4
    rung.durable.recover_sync(attempt, "x", run_id="r", **ports(journal))
    assert attempt.calls == 6
    rung.gather_sync(rung.GatherJob(attempt, rung.Request(prompt="x")), **ports(journal))
    assert attempt.calls == 8


def test_a_policy_of_the_caller_wins(journal: Journal) -> None:
    """A policy or the name of a ladder that the caller gives is used as it is."""
    put_setting(journal, "policy", {"retries": 0}, "ada")
    attempt = Failing()
    rung.recover_sync(attempt, "x", policy=rung.policy("call", patience=0), **ports(journal))
    assert attempt.calls == 4


def test_without_anything_stored_the_ladder_is_task(journal: Journal) -> None:
    """A journal of a project without settings changes nothing."""
    outcome = rung.recover_sync(lambda _: "done", "x", **ports(journal))
    assert (outcome.ok, outcome.ladder) == (True, "task")


def fresh(journal: Journal) -> dict[str, Any]:
    """Let the journal read its policies at each call, and return the ports of a guarded function."""
    journal.policy_source = lambda ladder: PolicyStore(journal).pick(journal.project, default_ladder=ladder)
    return ports(journal)


@pytest.mark.parametrize("kind", ["function", "coroutine", "generator", "async generator"])
def test_a_guarded_function_follows_the_policy(journal: Journal, kind: str) -> None:
    """A guarded function without a policy has that of its journal's project in each call, also one set after its decoration."""
    calls = []
    guard: Callable[[Any], Any] = rung.guarded(**fresh(journal))

    def function() -> None:
        calls.append(1)
        raise rung.AttemptError("boom", status=500)

    async def coroutine() -> None:
        function()

    def generator() -> Iterator[int]:
        function()
        yield 1

    async def async_generator() -> AsyncIterator[int]:
        function()
        yield 1

    async def drain() -> None:
        async for _ in guarded["async generator"]():
            pass

    each = {"function": function, "coroutine": coroutine, "generator": generator, "async generator": async_generator}
    guarded = {name: guard(one) for name, one in each.items()}

    def call() -> int:
        calls.clear()
        ways: dict[str, Callable[[], object]] = {
            "function": guarded["function"],
            "coroutine": lambda: asyncio.run(guarded["coroutine"]()),
            "generator": lambda: list(guarded["generator"]()),
            "async generator": lambda: asyncio.run(drain()),
        }
        with pytest.raises(rung.AttemptError):
            ways[kind]()
        return len(calls)

    put_setting(journal, "policy", {"patience": 0}, "ada")
    assert call() == 4  # the ladder `call`, with its three retries
    put_setting(journal, "policy/web", {"retries": 1}, "ada")
    assert call() == 2
    put_setting(journal, "policy/web", {"retries": 0}, "ada")
    assert call() == 1


def test_a_guarded_function_keeps_a_policy_of_its_own(journal: Journal) -> None:
    """The name of a ladder, or a policy, given to the decorator is used as it is."""
    put_setting(journal, "policy", {"retries": 0}, "ada")
    attempt = Failing()
    guarded = rung.guarded(rung.policy("call", retries=2, patience=0), **fresh(journal))(attempt.__call__)
    with pytest.raises(rung.AttemptError):
        guarded(rung.Request(prompt="x"))
    assert attempt.calls == 3
