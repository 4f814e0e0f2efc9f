"""Haystack: an Agent with one tool."""

from __future__ import annotations

from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from loop import KEY, PARAMETERS, PROMPT, Cell, serve


def run(cell: Cell) -> str:
    kind: Any = OpenAIChatGenerator if cell.wire == "chat" else OpenAIResponsesChatGenerator
    model = kind(model=cell.model, api_base_url=cell.v1, api_key=Secret.from_token(KEY), **cell.retries)
    tool = Tool(name="append_row", description="Append a row.", parameters=PARAMETERS, function=cell.append_row)
    callback = (lambda _: None) if cell.is_stream else None
    agent = Agent(chat_generator=model, tools=[tool], streaming_callback=callback)
    return agent.run(messages=[ChatMessage.from_user(PROMPT)])["messages"][-1].text or ""


serve(run)
