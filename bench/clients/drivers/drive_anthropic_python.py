"""anthropic: a hand-written loop over the Messages API."""

from __future__ import annotations

from typing import Any

import anthropic
from loop import FUNCTION, KEY, PARAMETERS, PROMPT, Cell, serve, take_turns

TOOL = {"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}


def run(cell: Cell) -> str:
    client = anthropic.Anthropic(base_url=cell.url, api_key=KEY, **cell.retries)
    messages: list[Any] = [{"role": "user", "content": PROMPT}]

    def turn() -> str | None:
        told = {"model": cell.model, "max_tokens": 2_000, "messages": messages, "tools": [TOOL]}
        answer = cell.ask(client.messages, told, "get_final_message")
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in answer.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": cell.append_row(**call.input)} for call in calls
        ]
        messages.extend([{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}])
        return None

    return take_turns(turn)


serve(run)
