"""Pydantic AI: an agent with one tool."""

from __future__ import annotations

import asyncio
from typing import Any

from loop import KEY, PROMPT, Cell, serve
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def model(cell: Cell) -> Any:
    if cell.wire == "messages":
        from anthropic import AsyncAnthropic

        client = AsyncAnthropic(base_url=cell.url, api_key=KEY, **cell.retries)
        return AnthropicModel(cell.model, provider=AnthropicProvider(anthropic_client=client))
    from openai import AsyncOpenAI

    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=cell.v1, api_key=KEY, **cell.retries))
    return (OpenAIChatModel if cell.wire == "chat" else OpenAIResponsesModel)(cell.model, provider=provider)


async def ask(cell: Cell) -> str:
    agent = Agent(model(cell), tools=[cell.append_row])
    if not cell.is_stream:
        return str((await agent.run(PROMPT)).output)
    async with agent.iter(PROMPT) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass
    return str(run.result.output)


serve(lambda cell: asyncio.run(ask(cell)))
