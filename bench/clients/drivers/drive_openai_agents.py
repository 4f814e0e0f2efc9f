"""OpenAI Agents SDK: an agent with one tool."""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from loop import KEY, PROMPT, Cell, serve
from openai import AsyncOpenAI

set_tracing_disabled(disabled=True)


async def ask(cell: Cell) -> str:
    client = AsyncOpenAI(base_url=cell.v1, api_key=KEY, **cell.retries)
    kind = OpenAIChatCompletionsModel if cell.wire == "chat" else OpenAIResponsesModel
    tool = function_tool(cell.append_row)
    agent = Agent(name="a", model=kind(model=cell.model, openai_client=client), tools=[tool])
    if not cell.is_stream:
        return str((await Runner.run(agent, PROMPT)).final_output)
    result = Runner.run_streamed(agent, PROMPT)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


serve(lambda cell: asyncio.run(ask(cell)))
