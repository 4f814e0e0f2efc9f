"""Workflows for the tests of the Temporal adapter. They run in Temporal's sandbox: this module imports little."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():  # also where no plugin does it
    import rung
    from rung.adapters.durable.temporal import attempt_activity, recover
    from rung.core.domain.event_codec import to_json
    from tests.adapters.durable.temporal_replays import EVENTS

LIMIT = timedelta(minutes=5)


@workflow.defn
class Once:
    """Calls the activity `call` with Temporal's default retry policy."""

    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_activity("call", start_to_close_timeout=LIMIT, heartbeat_timeout=LIMIT)


@workflow.defn
class OncePolicy:
    """Calls the activity `call` with a retry policy that names a class."""

    @workflow.run
    async def run(self, name: str) -> Any:
        from temporalio.common import RetryPolicy

        policy = RetryPolicy(non_retryable_error_types=[name])
        return await workflow.execute_activity("call", start_to_close_timeout=LIMIT, retry_policy=policy)


@workflow.defn
class Patient:
    """Calls the activity `call`, and waits for its end when it is cancelled."""

    @workflow.run
    async def run(self) -> Any:
        waits = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        return await workflow.execute_activity(
            "call", start_to_close_timeout=LIMIT, heartbeat_timeout=LIMIT, cancellation_type=waits
        )


@workflow.defn
class Recovering:
    """Recovers on a ladder; each attempt is the activity of this name."""

    @workflow.run
    async def run(self, activity: str, options: dict[str, Any]) -> dict[str, Any]:
        policy = rung.policy(
            options.get("ladder", "task"),
            models=[{"name": name} for name in options.get("models", ())],
            backoff={"base": 0.01, "cap": 0.02},
            attempt_seconds=options.get("seconds"),
            budget={"attempts": options.get("attempts", 20)},
        )
        idempotent = options.get("idempotent", False)
        outcome = await recover(
            reference if options.get("direct") else activity,
            rung.Request(prompt="count", model=options.get("model", ""), idempotent=idempotent),
            policy=policy,
            attended=options.get("attended", False),
            **self.activity_options(options),
        )
        events = EVENTS[workflow.info().workflow_id] = [to_json(event) for event in outcome.events]
        return {**outcome.to_dict(), "value": outcome.value, "events": events}

    def activity_options(self, options: dict[str, Any]) -> Any:
        if options.get("nobody"):
            return {"task_queue": "nobody", "schedule_to_start_timeout": timedelta(milliseconds=50)}
        return {"heartbeat_timeout": timedelta(seconds=options["heartbeat"])} if "heartbeat" in options else {}


def _unused(request: rung.Request) -> None:
    """Stands for the attempt that a worker registers under the same name."""


reference = attempt_activity(_unused, name="attempt")


@workflow.defn
class Misused:
    """Gives `recover` an option that it owns, and returns the error."""

    @workflow.run
    async def run(self, option: str) -> str:
        wrong: Any = {option: None}
        try:
            await recover("attempt", "p", **wrong)
        except rung.errors.ConfigError as error:
            return str(error)
        return ""
