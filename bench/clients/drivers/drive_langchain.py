"""LangChain: create_agent with one tool."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from loop import KEY, PROMPT, Cell, serve


def model(cell: Cell) -> Any:
    if cell.wire == "messages":
        return ChatAnthropic(model=cell.model, base_url=cell.url, api_key=KEY, streaming=cell.is_stream, **cell.retries)
    return ChatOpenAI(
        model=cell.model, base_url=cell.v1, api_key=KEY, streaming=cell.is_stream,
        use_responses_api=cell.wire == "responses", **cell.retries,
    )  # fmt: skip


def run(cell: Cell) -> str:
    agent = create_agent(model(cell), [tool(cell.append_row)])
    told: Any = {"messages": [{"role": "user", "content": PROMPT}]}
    return agent.invoke(told)["messages"][-1].text


serve(run)
