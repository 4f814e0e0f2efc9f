"""Settings of single tools hold for the failures of that tool, in whatever loop it runs."""

from __future__ import annotations

import pytest

import rung
from rung.core.policy.parser import parse_policy_file
from rung.core.policy.tool_settings import policy_for_tool
from rung.testing import FakeClock

FILE = {
    "policy": {"ladder": "task"},
    "tools": {"bash": {"retries": 0}, "fetch": {"retries": 5, "backoff": {"base": 0}}, "sql": {"template": "off"}},
}


def attempts(tool: str, limits: dict[str, object] | None = None) -> int:
    book = parse_policy_file(FILE, limits)
    calls: list[str] = []

    def attempt(request: rung.Request) -> str:
        calls.append(request.prompt)
        raise rung.AttemptError("connection reset by peer", finding="network", tool=tool)

    rung.recover_sync(
        attempt, "do it", policy=book.default.replace(patience=0.0), clock=FakeClock(), breakers=None, retry_budget=None
    )
    return len(calls)


@pytest.mark.parametrize(("tool", "calls"), [("", 4), ("unknown", 4), ("bash", 1), ("sql", 1), ("fetch", 6)])
def test_the_tool_that_failed_decides(tool: str, calls: int) -> None:
    """A failure that names its tool is retried as that tool's table says; an unknown tool changes nothing."""
    assert attempts(tool) == calls


def test_a_guarded_function_asks_for_the_tool_too() -> None:
    """The first retry of a decorated function is not taken from a cache that does not know the tool."""
    calls: list[str] = []

    @rung.guarded(parse_policy_file({**FILE, "policy": {"ladder": "call", "backoff": {"base": 0}}}).default)
    def call(tool: str) -> None:
        calls.append(tool)
        raise rung.AttemptError("connection reset by peer", finding="network", tool=tool)

    for tool in ("bash", "bash"):
        with pytest.raises(rung.AttemptError):
            call(tool)
    assert calls == ["bash", "bash"]


def test_a_file_that_nobody_trusted_raises_nothing() -> None:
    """The tools of a file that is not trusted may retry less, and get no attempts beyond those of their user."""
    assert attempts("bash", {}) == 1
    assert attempts("fetch", {"attempts": 2}) == 2


def test_an_incident_stays_on_its_ladder() -> None:
    """A tool's table that names another ladder changes the other settings, so that the rungs stay the incident's."""
    policy = parse_policy_file({"tools": {"x": {"ladder": "crew", "attempts": 2}}}).default
    changed = policy_for_tool(policy, "x")
    assert changed.ladder == policy.ladder
    assert changed.budget.attempts == 2
