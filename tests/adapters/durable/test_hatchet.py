"""Hatchet reads converted errors: a task run by the worker code of its SDK, which decides what its server is told."""

from __future__ import annotations

import asyncio
import base64
import json
from queue import Queue
from typing import Any

import pytest
from hatchet_sdk import ClientConfig, Context, EmptyModel, Hatchet
from hatchet_sdk.contracts.dispatcher_pb2 import STEP_EVENT_TYPE_FAILED, STEP_EVENT_TYPE_STARTED
from hatchet_sdk.runnables.action import Action, ActionPayload, ActionType
from hatchet_sdk.worker.runner.runner import Runner
from hatchet_sdk.worker.runner.utils.capture_logs import AsyncLogSender

import rung
from rung.adapters.durable.hatchet import hatchet_errors

NOWHERE = "127.0.0.1:1"  # a worker without a server: nothing listens there


def _config() -> ClientConfig:
    claims = {"sub": "tenant", "server_url": f"http://{NOWHERE}", "grpc_broadcast_address": NOWHERE}
    parts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims)
    )
    return ClientConfig(token=".".join((*parts, "unsigned")), host_port=NOWHERE, server_url=f"http://{NOWHERE}")


def run_task(facts: dict[str, Any], *, is_async: bool) -> Any:
    """Run a task that fails so, in the SDK's worker. Return the event that the server would be sent."""
    hatchet = Hatchet(config=_config())

    def fail(input: EmptyModel, ctx: Context) -> None:  # noqa: A002  # Hatchet's name
        with hatchet_errors():
            raise rung.AttemptError("provider failed", **facts)

    async def fail_async(input: EmptyModel, ctx: Context) -> None:  # noqa: A002  # Hatchet's name
        fail(input, ctx)

    workflow = hatchet.task(name="fail", retries=3)(fail_async if is_async else fail)
    (task,) = workflow.tasks
    sent: Any = Queue()  # the SDK's is one of processes

    async def work() -> None:
        registry, log = {"fail": task}, AsyncLogSender(hatchet.event)
        runner = Runner(sent, hatchet.config, 1, 1, False, registry, [], None, log, "v0.111.0")
        await runner.handle_start_step_run(_action())

    asyncio.run(work())
    started, failed = sent.get_nowait(), sent.get_nowait()
    assert sent.empty()
    assert (started.type, failed.type) == (STEP_EVENT_TYPE_STARTED, STEP_EVENT_TYPE_FAILED)
    return failed


def _action() -> Action:
    names = ("worker_id", "tenant_id", "workflow_run_id", "job_id", "job_name", "job_run_id", "step_id", "step_run_id")
    fields = {**dict.fromkeys(names, "x"), "action_id": "fail", "action_type": ActionType.START_STEP_RUN}
    return Action.model_validate({**fields, "retry_count": 0, "action_payload": ActionPayload()})


@pytest.mark.filterwarnings("ignore:The .* property is internal:DeprecationWarning")  # the SDK itself uses them
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("facts", "is_final", "delay", "message"),
    [
        ({"status": 429, "code": "insufficient_quota"}, True, None, "NonRetryableException: quota_exhausted: "),
        ({"status": 429, "retry_after": 7200.5}, False, 7_200_500, "RetryAfterException: rate_limit: "),
        ({"status": 529}, False, None, "AttemptError: overloaded: "),
    ],
    ids=["quota", "delay", "overload"],
)
def test_the_worker_tells_the_server_what_to_do(
    facts: dict[str, Any], is_final: bool, delay: int | None, message: str, is_async: bool
) -> None:
    """A quota is final, a delay is sent in milliseconds, and an overload is left to the task's backoff."""
    event = run_task(facts, is_async=is_async)
    assert (event.should_not_retry, event.retry_after_ms) == (is_final, delay)
    assert event.payload.startswith(f"{message}provider failed")
