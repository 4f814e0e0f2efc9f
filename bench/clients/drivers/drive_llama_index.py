"""LlamaIndex: a FunctionAgent with one tool."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAI, OpenAIResponses
from loop import KEY, PROMPT, Cell, serve


def model(cell: Cell) -> Any:
    if cell.wire == "messages":
        return Anthropic(model=cell.model, base_url=cell.url, api_key=KEY, max_tokens=2_000, **cell.retries)
    kind = OpenAI if cell.wire == "chat" else OpenAIResponses
    return kind(model="gpt-4o", api_base=cell.v1, api_key=KEY, **cell.retries)


async def ask(cell: Cell) -> str:
    tool = FunctionTool.from_defaults(fn=cell.append_row, name="append_row")
    agent = FunctionAgent(tools=[tool], llm=model(cell), streaming=cell.is_stream, timeout=None)
    return str((await agent.run(PROMPT)).response.content)


serve(lambda cell: asyncio.run(ask(cell)))
