"""A real Restate server reads converted errors: it retries what may be repeated, when it may, and nothing else."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import restate
import uvicorn

import rung
from rung.adapters.durable.restate import restate_errors
from tests.adapters.durable.restate_server import server
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

CALLS: Counter[str] = Counter()
AGENT = restate.Service("agent")


def fail(order: dict[str, Any]) -> str:
    """Fail as often as the order says, then succeed."""
    CALLS[order["name"]] += 1
    if CALLS[order["name"]] <= order["times"]:
        raise rung.AttemptError("provider failed", **order["facts"])
    return "done"


@AGENT.handler()
async def body(ctx: restate.Context, order: dict[str, Any]) -> str:
    """Call a provider in the handler, after a step."""
    with restate_errors():
        await ctx.run_typed("first", lambda: "done")
        return fail(order)


@AGENT.handler()
async def action(ctx: restate.Context, order: dict[str, Any]) -> str:
    """Call a provider in a journaled action."""

    def call() -> str:
        with restate_errors():
            return fail(order)

    return await ctx.run_typed("call", call)


@AGENT.handler()
async def bare(ctx: restate.Context, order: dict[str, Any]) -> str:
    """Call a provider without the adapter."""
    return fail(order)


class Running(NamedTuple):
    """A server with the service."""

    admin: httpx.Client
    ingress: httpx.Client

    def call(self, handler: str, name: str, times: int = 1_000, **facts: Any) -> httpx.Response:
        """Call a handler and wait for its result."""
        return self.ingress.post(f"/agent/{handler}", json={"name": name, "times": times, "facts": facts})

    def send(self, handler: str, name: str, **facts: Any) -> str:
        """Call a handler without waiting. Return the id of the invocation."""
        order = {"name": name, "times": 1_000, "facts": facts}
        invocation: str = self.ingress.post(f"/agent/{handler}/send", json=order).json()["invocationId"]
        return invocation

    def waits(self, invocation: str) -> dict[str, Any] | None:
        """Return what the server knows about an invocation that waits for its next try."""
        sql = f"SELECT next_retry_at, last_failure FROM sys_invocation WHERE id = '{invocation}'"
        answer = self.admin.post("/query", json={"query": sql}, headers={"accept": "application/json"})
        (row,) = answer.json()["rows"]
        return row if row.get("next_retry_at") and row.get("last_failure") else None

    def kill(self, invocation: str) -> None:
        """End an invocation."""
        self.admin.patch(f"/invocations/{invocation}/kill").raise_for_status()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """Return a real server with the service of this module behind it, on loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    app: Any = restate.app([AGENT], protocol="request_response")
    endpoint = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=endpoint.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        with server() as (admin, ingress):
            uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
            registered = admin.post("/deployments", json={"uri": uri, "use_http_11": True})
            assert registered.is_success, registered.text
            yield Running(admin, ingress)
    finally:
        endpoint.should_exit = True
        thread.join()
        listener.close()


@pytest.mark.parametrize("handler", ["body", "action"])
def test_a_quota_ends_the_invocation(running: Running, handler: str) -> None:
    """A quota is a terminal error: one call, and the caller reads the kind."""
    answer = running.call(handler, f"quota-{handler}", status=429, code="insufficient_quota")
    assert answer.status_code == 500
    assert answer.json()["message"] == "quota_exhausted: provider failed"
    assert answer.json()["metadata"] == {"rung.kind": "quota_exhausted"}
    assert CALLS[f"quota-{handler}"] == 1


@pytest.mark.parametrize("handler", ["body", "action"])
def test_an_overload_is_retried(running: Running, handler: str) -> None:
    """An overload is retried with Restate's own backoff until it passes."""
    answer = running.call(handler, f"busy-{handler}", times=2, status=529)
    assert (answer.status_code, answer.json()) == (200, "done")
    assert CALLS[f"busy-{handler}"] == 3


@pytest.mark.parametrize("handler", ["body", "action"])
def test_a_delay_is_obeyed(running: Running, handler: str) -> None:
    """The server schedules the next try when the provider asked for it."""
    asked_at = datetime.now(UTC)
    invocation = running.send(handler, f"delay-{handler}", status=429, retry_after=7200)
    row = wait_until(lambda: running.waits(invocation))
    running.kill(invocation)
    assert timedelta(hours=1, minutes=59) < datetime.fromisoformat(row["next_retry_at"]) - asked_at < timedelta(hours=3)
    assert "rate_limit: provider failed" in row["last_failure"]
    assert CALLS[f"delay-{handler}"] == 1


def test_without_the_adapter_a_quota_is_retried(running: Running) -> None:
    """What the adapter changes: Restate alone calls a provider again that has refused for good."""
    invocation = running.send("bare", "bare", status=429, code="insufficient_quota")
    wait_until(lambda: CALLS["bare"] > 1)
    running.kill(invocation)
