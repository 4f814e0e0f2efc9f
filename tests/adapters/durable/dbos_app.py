"""Application on DBOS that its tests start, kill and start again: `python -m … SCENARIO WORKFLOW DIRECTORY URL SCHEMA`.

DBOS is one global instance per process. Prints the result of the workflow as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSPortableJSONSerializer, SetWorkflowID, error

import rung
from rung.adapters.durable.dbos import recover
from rung.core.domain.event_codec import to_json

SCENARIO, WORKFLOW, DIRECTORY, URL, SCHEMA = sys.argv[1:]
LOG = Path(DIRECTORY, "attempts.log")
EVENTS = Path(DIRECTORY, f"events.{os.getpid()}.jsonl")
REQUEST = rung.Request(prompt="p", model="small", idempotent=True)
BACKOFF = {"base": 0.2, "cap": 0.2}


def log(line: str) -> None:
    """Append a line; it survives a kill."""
    with LOG.open("a") as file:
        file.write(line + "\n")


def record_event(event: Any, *_: Any) -> None:
    """Append an event of the recovery to the file of this process."""
    with EVENTS.open("a") as file:
        file.write(json.dumps(to_json(event), sort_keys=True) + "\n")


def begin() -> int:
    """Log the beginning of an attempt and return its number, or die here."""
    number = 1 + LOG.read_text().count("ended") if LOG.exists() else 1
    log(f"{number} began")
    if os.environ.get("DIES_IN") == str(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return number


async def busy_then_incapable(request: rung.Request) -> dict[str, str]:
    """Fail with an overload, then because of the model, then succeed."""
    number = begin()
    log(f"{number} ended")
    rung.report_step(f"step {number}")
    if number == 1:
        raise rung.AttemptError("Overloaded", status=529)
    if number == 2:
        raise rung.AttemptError("too hard", finding="capability_mismatch")
    return {"model": request.model}


def ambiguous(request: rung.Request) -> str:
    """Fail until a person has decided. A plain function."""
    number = begin()
    log(f"{number} ended")
    if not request.recovery:
        raise rung.AttemptError("which one?", finding="strategic_ambiguity")
    return request.recovery


async def hang(request: rung.Request) -> None:
    """Wait for ever, and log the cancellation."""
    begin()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        log("cancelled")
        raise


def to_table(outcome: rung.Outcome[Any]) -> dict[str, Any]:
    """Return what a workflow returns of an outcome."""
    return {
        "id": outcome.id,
        "status": outcome.status.value,
        "value": outcome.value,
        "attempts": outcome.attempts,
        "steps": [*outcome.steps],
    }


@DBOS.workflow()
async def ladder() -> dict[str, Any]:
    """Recover with a retry and a fallback; then once more under another name."""
    policy = rung.policy("task", models=["small", "large"], backoff=BACKOFF)
    journal = rung.journal(Path(DIRECTORY, "journal.db"))
    first = await recover(busy_then_incapable, REQUEST, policy=policy, listeners=[record_event], journal=journal)
    await asyncio.to_thread(journal.close)
    second = await recover(busy_then_incapable, REQUEST, name="second", policy=policy)
    return {"first": to_table(first), "second": to_table(second)}


@DBOS.workflow()
async def careful() -> dict[str, Any]:
    """Recover what may have side effects, with a retry."""
    policy = rung.policy("task", backoff=BACKOFF, attempts=2)
    return to_table(await recover(busy_then_incapable, REQUEST.replace(idempotent=False), policy=policy))


@DBOS.workflow()
async def question() -> dict[str, Any]:
    """Recover with a person's help."""
    policy = rung.policy("pipeline", backoff=BACKOFF)
    seconds = float(os.environ.get("ANSWER_SECONDS", "3600"))
    listeners = [record_event]
    return to_table(
        await recover(ambiguous, REQUEST, policy=policy, attended=True, answer_seconds=seconds, listeners=listeners)
    )


@DBOS.workflow()
async def cancelled() -> dict[str, Any]:
    """Be cancelled in an attempt."""
    return to_table(await recover(hang, REQUEST))


@DBOS.workflow()
async def timeout() -> dict[str, Any]:
    """Exceed the time limit of an attempt."""
    outcome = await recover(hang, REQUEST, policy=rung.policy("task", attempt_seconds=0.2, attempts=1))
    assert outcome.failure is not None
    return {"kind": outcome.failure.kind.value}


@DBOS.step(retries_allowed=True, interval_seconds=0.01, max_attempts=3, should_retry=rung.is_retryable)
async def plain_step(facts: dict[str, Any]) -> None:
    """Fail as told, in a step that DBOS retries."""
    log(f"{facts['status']}{facts.get('code', '')}")
    raise rung.AttemptError("provider failed", **facts)


@DBOS.workflow()
async def steps() -> dict[str, Any]:
    """Run plain steps with `should_retry`."""
    errors = {}
    for facts in ({"status": 429, "code": "insufficient_quota"}, {"status": 529}):
        try:
            await plain_step(facts)
        except Exception as raised:
            errors[str(facts["status"])] = type(raised).__name__
    return errors


@DBOS.step()
async def inner() -> None:
    """Recover inside a step: misuse."""
    await recover(hang, REQUEST)


@DBOS.workflow()
async def misuse() -> dict[str, Any]:
    """Misuse `recover`."""
    told = []
    for call in (
        inner,
        lambda: recover(7, REQUEST),  # type: ignore[arg-type]  # misuse
        lambda: recover(hang, 7),  # type: ignore[arg-type]  # misuse
        lambda: recover(hang, REQUEST, policy="none"),
        lambda: recover(hang, REQUEST, listeners=7),  # type: ignore[arg-type]  # misuse
        lambda: recover(hang, REQUEST, answer_seconds=0),
    ):
        try:
            await call()
        except Exception as raised:
            told.append(f"{type(raised).__name__}: {raised}")
    return {"told": told}


async def main() -> None:
    """Start the workflow, or wait for one that an earlier process started and this one continues."""
    DBOS(
        config={
            "name": "rung-tests",
            "system_database_url": URL,
            "dbos_system_schema": SCHEMA,
            "sys_db_pool_size": 4,
            "application_version": "1",
            "executor_id": WORKFLOW,
            "serializer": DBOSPortableJSONSerializer(),
            "notification_listener_polling_interval_sec": 0.05,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    if await DBOS.get_workflow_status_async(WORKFLOW) is None:
        with SetWorkflowID(WORKFLOW):
            await DBOS.start_workflow_async(globals()[SCENARIO])
    handle: Any = await DBOS.retrieve_workflow_async(WORKFLOW)
    try:
        result = await handle.get_result(polling_interval_sec=0.05)
    except error.DBOSAwaitedWorkflowCancelledError:
        result = {"status": "CANCELLED"}
    names = [step["function_name"] for step in await DBOS.list_workflow_steps_async(WORKFLOW)]
    sys.stdout.write(json.dumps({**result, "names": names}) + "\n")
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main())
