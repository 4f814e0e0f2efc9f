"""A Pydantic AI agent with our capability in a workflow of DBOS: `python -m … DATABASE PROVIDER` prints its answer and steps.

DBOS is one global instance per process.
"""

from __future__ import annotations

import asyncio
import json
import sys

from dbos import DBOS, SetWorkflowID
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import rung
from rung.adapters.frameworks.pydantic_ai import PydanticAIRecovery

DATABASE, PROVIDER = sys.argv[1:]
POLICY = rung.policy("call", backoff={"base": 0.01, "cap": 0.02})
CLIENT = AsyncOpenAI(base_url=PROVIDER, api_key="any", max_retries=0)
DBOS(config={"name": "agents", "system_database_url": f"sqlite:///{DATABASE}"})
AGENT = Agent(
    OpenAIChatModel("any", provider=OpenAIProvider(openai_client=CLIENT)),
    name="counter",
    capabilities=[DBOSDurability(), PydanticAIRecovery(POLICY)],
)


@DBOS.workflow()
async def asking() -> str:
    """Ask the agent."""
    return str((await AGENT.run("count to 5")).output)


async def main() -> dict[str, object]:
    """Run the workflow; return its answer and the names of its steps."""
    DBOS.launch()
    with SetWorkflowID("w"):
        answer = await asking()
    steps = await DBOS.list_workflow_steps_async("w")
    await CLIENT.close()
    return {"answer": answer, "steps": [step["function_name"] for step in steps]}


if __name__ == "__main__":
    json.dump(asyncio.run(main()), sys.stdout)
    sys.stdout.flush()
    DBOS.destroy()
