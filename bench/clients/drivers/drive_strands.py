"""Strands: an agent with one tool. Its models always stream."""

from __future__ import annotations

from typing import Any

from loop import KEY, PROMPT, Cell, serve
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel


def model(cell: Cell) -> Any:
    if cell.wire == "messages":
        told = {"base_url": cell.url, "api_key": KEY, **cell.retries}
        return AnthropicModel(client_args=told, model_id=cell.model, max_tokens=2_000)
    told = {"base_url": cell.v1, "api_key": KEY, **cell.retries}
    if cell.wire == "responses":
        from strands.models.openai_responses import OpenAIResponsesModel

        return OpenAIResponsesModel(client_args=told, model_id=cell.model)
    return OpenAIModel(client_args=told, model_id=cell.model)


def run(cell: Cell) -> str:
    @tool
    def append_row(row: str) -> str:
        """Append a row."""
        return cell.append_row(row)

    more = {} if cell.has_tries else {"retry_strategy": None}
    agent = Agent(model=model(cell), tools=[append_row], callback_handler=None, **more)
    answer = agent(PROMPT)
    return "".join(part.get("text", "") for part in answer.message["content"])


serve(run)
