"""An OpenAI agent on Temporal, in the environment of `temporalio-openai-agents`, which needs an older `openai-agents` than ours.

`python temporal_openai_agents.py ADDRESS PROVIDER…` runs a workflow for each provider, without and with our plugin, until
its model activity has ended or waits for a retry, and prints what became of them as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from datetime import timedelta
from typing import Any

from agents import Agent, OpenAIProvider, Runner
from openai import AsyncOpenAI
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin  # type: ignore[import-not-found]  # not in our environment
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():  # as our plugin does
    from rung.adapters.durable.temporal import RungPlugin, failure_of


@workflow.defn
class Asking:
    """Asks an agent."""

    @workflow.run
    async def run(self) -> str:
        return str((await Runner.run(Agent(name="counter", model="any"), "count to 5")).final_output)


async def main(address: str, provider: str, *, with_rung: bool) -> dict[str, Any]:
    """Run the workflow and return what became of its model activity."""
    client = AsyncOpenAI(base_url=provider, api_key="any", max_retries=0)
    agents = OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=timedelta(minutes=5)),
        model_provider=OpenAIProvider(openai_client=client, use_responses=False),
    )
    temporal = await Client.connect(address, plugins=[agents, *([RungPlugin()] if with_rung else [])])
    name = f"openai-{uuid.uuid4()}"
    async with Worker(temporal, task_queue=name, workflows=[Asking]):
        handle = await temporal.start_workflow(Asking.run, id=name, task_queue=name)
        return await _ended_or_waiting(handle)


async def _ended_or_waiting(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    ended = asyncio.create_task(handle.result())
    while not ended.done():
        pending = (await handle.describe()).raw_description.pending_activities
        if pending and pending[0].HasField("last_failure"):
            ended.cancel()
            await handle.terminate()
            return {"delay": pending[0].current_retry_interval.seconds, "said": pending[0].last_failure.message}
        await asyncio.wait([ended], timeout=0.02)
    try:
        return {"answer": ended.result()}
    except WorkflowFailureError as error:
        failure = failure_of(error)
        return {"kind": None if failure is None else failure.kind.value}


async def all_of_them(address: str, *providers: str) -> list[dict[str, Any]]:
    """Run a workflow for each provider, without and with our plugin."""
    return [await main(address, provider, with_rung=rung) for provider in providers for rung in (False, True)]


if __name__ == "__main__":
    json.dump(asyncio.run(all_of_them(*sys.argv[1:])), sys.stdout)
