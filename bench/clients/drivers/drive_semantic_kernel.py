"""Semantic Kernel: a ChatCompletionAgent with one function."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from loop import KEY, PROMPT, Cell, serve
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.functions import KernelFunctionFromMethod, kernel_function


def service(cell: Cell) -> Any:
    if cell.wire == "messages":
        from anthropic import AsyncAnthropic
        from semantic_kernel.connectors.ai.anthropic import AnthropicChatCompletion

        client = AsyncAnthropic(base_url=cell.url, api_key=KEY, **cell.retries)
        return AnthropicChatCompletion(ai_model_id=cell.model, api_key=KEY, async_client=client)
    from openai import AsyncOpenAI
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

    client = AsyncOpenAI(base_url=cell.v1, api_key=KEY, **cell.retries)
    return OpenAIChatCompletion(ai_model_id=cell.model, async_client=client)


async def ask(cell: Cell) -> str:
    @kernel_function(name="append_row", description="Append a row.")
    def append_row(row: Annotated[str, "the row"]) -> str:
        return cell.append_row(row)

    kernel = Kernel()
    kernel.add_function("rows", KernelFunctionFromMethod(append_row, plugin_name="rows"))
    agent = ChatCompletionAgent(service=service(cell), kernel=kernel, name="a")
    if not cell.is_stream:
        return str((await agent.get_response(PROMPT)).content)
    text = ""
    async for chunk in agent.invoke_stream(PROMPT):
        text += str(chunk.content)
    return text.removeprefix("I will append the row now.")


serve(lambda cell: asyncio.run(ask(cell)))
