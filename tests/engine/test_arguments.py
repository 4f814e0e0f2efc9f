"""Misuse of a recovery's arguments."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rung


async def later(request: rung.Request) -> str:
    return "done"


def now(request: rung.Request) -> str:
    return "done"


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
    ],
)
def test_misuse_is_an_error_before_anything_runs(
    attempt: Any, request_: Any, ports: dict[str, Any], named: str, blocking: bool
) -> None:
    """What cannot work is a TypeError in one line that names the argument and what is allowed."""
    recover = rung.recover_sync if blocking else lambda *args, **kw: asyncio.run(rung.recover(*args, **kw))
    with pytest.raises(TypeError, match=named) as raised:
        recover(attempt, request_, **ports)
    assert "\n" not in str(raised.value)


def test_an_async_attempt_is_not_a_result() -> None:
    """A coroutine function in a blocking recovery is refused, instead of returning a coroutine as a success."""
    with pytest.raises(TypeError, match="later is async; use `recover`"):
        rung.recover_sync(later, "go")
    assert rung.recover_sync(now, "go").value == "done"
    awaited: rung.Outcome[str] = asyncio.run(rung.recover(later, "go"))
    assert awaited.value == "done"
