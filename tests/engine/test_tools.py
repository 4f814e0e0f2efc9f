"""Tool calls inside durable recoveries and tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import RungError
from rung.engine.durable.task_recovery import attempt_step

if TYPE_CHECKING:
    from pathlib import Path

calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


@rung.durable.tool
def pay(order: str, cents: int = 100) -> str:
    """Tool with a side effect."""
    calls.append(f"{order} {cents}")
    return f"paid {order}"


@rung.durable.tool
async def apay(order: str) -> str:
    """Async tool."""
    calls.append(order)
    return f"paid {order}"


class Killed(BaseException):
    """The process died."""


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with rung.journal(tmp_path / "journal.db") as opened:
        yield opened


def test_outside_of_durable_runs_a_tool_is_its_function() -> None:
    """Without a durable run, a tool is called as it is."""
    assert pay("a", cents=5) == "paid a"
    assert asyncio.run(apay("b")) == "paid b"
    assert calls == ["a 5", "b"]
    assert pay.__name__ == "pay"


@pytest.mark.parametrize("is_async", [False, True])
def test_an_interrupted_attempt_does_not_repeat_its_tool_calls(journal: Any, is_async: bool) -> None:
    """The attempt that is made again after a crash gets the results of the tool calls that had finished."""
    dies = [True]

    def attempt(request: rung.Request) -> list[str]:
        done = [pay("a"), pay("a"), pay("b")]
        if dies.pop() if dies else False:
            raise Killed
        return [*done, pay("c")]

    async def aattempt(request: rung.Request) -> Any:
        done = [await apay("a"), await apay("a"), await apay("b")]
        if dies.pop() if dies else False:
            raise Killed
        return [*done, await apay("c")]

    def run() -> Any:
        request = rung.Request(prompt="p", idempotent=True)
        if is_async:
            recovery: Any = rung.durable.recover(aattempt, request, journal=journal, run_id="r")
            return asyncio.run(recovery)
        return rung.durable.recover_sync(attempt, request, journal=journal, run_id="r")

    with pytest.raises(Killed):
        run()
    outcome = run()
    assert outcome.value == ["paid a", "paid a", "paid b", "paid c"]
    assert [call.split()[0] for call in calls] == ["a", "a", "b", "c"]


def test_a_new_attempt_calls_its_tools_again(journal: Any) -> None:
    """A retry after a failure is another attempt: its tool calls are its own."""

    def attempt(request: rung.Request) -> str:
        pay("a")
        if len(calls) == 1:
            raise ConnectionError("reset")
        return "done"

    outcome = rung.durable.recover_sync(attempt, rung.Request(prompt="p", idempotent=True), journal=journal, run_id="r")
    assert outcome.ok
    assert len(calls) == 2


def test_a_plain_task_records_its_tool_calls(journal: Any) -> None:
    """In a plain task a tool call is a step."""

    @rung.durable.task("shop-plain")
    def shop() -> list[str]:
        first = pay("a")
        if len(calls) < 2:
            calls.append("died")
            raise Killed
        return [first, pay("a"), pay("b", cents=7)]

    with pytest.raises(Killed):
        rung.durable.start(journal, "r", "shop-plain")
    assert rung.durable.start(journal, "r", "shop-plain") == ["paid a", "paid a", "paid b"]
    assert calls == ["a 100", "died", "a 100", "b 7"]


def test_a_plain_tool_in_an_async_task_is_refused(journal: Any) -> None:
    """A tool that cannot be awaited is refused where its result could not be recorded without blocking."""

    @rung.durable.task("shop-async")
    async def shop() -> str:
        return pay("a")

    with pytest.raises(RungError, match="coroutine function"):
        asyncio.run(rung.durable.start(journal, "r", "shop-async"))
    assert not calls


def test_a_tool_inside_a_step_is_refused() -> None:
    """Engines do not record steps within a step: a tool call there is an error, not a silent repetition."""

    async def attempt(request: rung.Request) -> str:
        return await apay("a")

    result = asyncio.run(attempt_step(attempt, rung.Request(prompt="p"), None))
    assert "call it from the task" in result["failure"]["message"]
    assert not calls


def test_misuse_of_tools() -> None:
    """What is no function, and arguments that have no position, are refused."""

    @rung.durable.tool
    def named_only(*, order: str) -> str:
        return order

    with pytest.raises(rung.errors.ConfigError, match="by position"):
        named_only(order="a")
    with pytest.raises(rung.errors.ConfigError, match="a function"):
        rung.durable.tool(7)  # type: ignore[type-var]  # misuse
