"""AutoGen: an AssistantAgent with one tool, which answers after the tool's result."""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from loop import KEY, PROMPT, Cell, serve


async def ask(cell: Cell) -> str:
    info = {
        "vision": False,
        "function_calling": True,
        "json_output": False,
        "family": "unknown",
        "structured_output": False,
    }
    client = OpenAIChatCompletionClient(
        model=cell.model, base_url=cell.v1, api_key=KEY, model_info=info, **cell.retries
    )

    async def append_row(row: str) -> str:
        """Append a row."""
        return cell.append_row(row)

    agent = AssistantAgent("a", client, tools=[append_row], model_client_stream=cell.is_stream, max_tool_iterations=6)
    result = await agent.run(task=PROMPT)
    return str(result.messages[-1].content)


serve(lambda cell: asyncio.run(ask(cell)))
