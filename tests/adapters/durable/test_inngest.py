"""Inngest reads converted errors: a function served by its SDK over ASGI, called as its server calls it."""

from __future__ import annotations

import asyncio
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import fastapi
import httpx
import inngest
import pytest

import rung
from rung.adapters.durable.inngest import inngest_errors

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # how its models are declared
    import inngest.fast_api

CLIENT = inngest.Inngest(app_id="shop", is_production=False)
RETRY_AFTER, NO_RETRY = "retry-after", "x-inngest-no-retry"


async def _fail(facts: dict[str, Any]) -> None:
    with inngest_errors():
        raise rung.AttemptError("provider failed", **facts)


@CLIENT.create_function(fn_id="step", trigger=inngest.TriggerEvent(event="failed"), retries=3)
async def fail_in_step(ctx: inngest.Context) -> None:
    """Fail in a step."""
    await ctx.step.run("call", _fail, dict(ctx.event.data))


@CLIENT.create_function(fn_id="body", trigger=inngest.TriggerEvent(event="failed"), retries=3)
async def fail_in_body(ctx: inngest.Context) -> None:
    """Fail in the body, which holds a step that succeeds."""
    with inngest_errors():
        await ctx.step.run("first", _first)
        await _fail(dict(ctx.event.data))


async def _first() -> str:
    return "done"


APP = fastapi.FastAPI()
inngest.fast_api.serve(APP, CLIENT, [fail_in_step, fail_in_body])


def call(function: str, steps: dict[str, Any] | None = None, **facts: Any) -> httpx.Response:
    """Call a function as the server of Inngest does."""
    event = {"name": "failed", "data": facts}
    ctx = {"attempt": 0, "max_attempts": 4, "disable_immediate_execution": False, "run_id": "r", "stack": {"stack": []}}
    body = {"ctx": ctx, "event": event, "events": [event], "steps": steps or {}, "use_api": False}

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(app=APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post("/api/inngest", params={"fnId": f"shop-{function}", "stepId": "step"}, json=body)

    return asyncio.run(post())


@pytest.fixture
def done() -> dict[str, Any]:
    """Return the record of the step that has succeeded, as the server sends it back."""
    (step,) = call("body").json()
    assert step["data"] == "done"
    return {step["id"]: {"data": step["data"]}}


@pytest.mark.parametrize("function", ["step", "body"])
def test_a_quota_is_not_retried(function: str, done: dict[str, Any]) -> None:
    """The SDK tells the server not to retry, with the kind in the message."""
    answer = call(function, done, status=429, code="insufficient_quota")
    assert (answer.status_code, answer.headers[NO_RETRY]) == (500, "true")
    assert RETRY_AFTER not in answer.headers
    assert answer.json()["message"] == "quota_exhausted: provider failed"


@pytest.mark.parametrize("function", ["step", "body"])
def test_a_delay_reaches_the_server(function: str, done: dict[str, Any]) -> None:
    """The SDK tells the server when to retry."""
    asked_at = datetime.now(UTC)
    answer = call(function, done, status=429, retry_after=7200)
    assert NO_RETRY not in answer.headers
    wait = datetime.fromisoformat(answer.headers[RETRY_AFTER]) - asked_at
    assert timedelta(hours=1, minutes=59) < wait < timedelta(hours=3)


def test_an_overload_is_retried_with_inngests_backoff(done: dict[str, Any]) -> None:
    """Without a delay, the server retries the step or the function on its own schedule."""
    step = call("step", status=529)
    assert [(part["op"], part["error"]["message"]) for part in step.json()] == [
        ("StepError", "overloaded: provider failed")
    ]
    body = call("body", done, status=529)
    assert (body.status_code, body.json()["message"]) == (500, "overloaded: provider failed")
    for answer in (step, body):
        assert not {NO_RETRY, RETRY_AFTER} & {*answer.headers}
