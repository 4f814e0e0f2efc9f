"""anthropic: a hand-written loop over the Messages API."""

from __future__ import annotations

from typing import Any

import anthropic
from loop import KEY, PROMPT, Cell, serve

TOOL = {
    "name": "append_row",
    "description": "Append a row.",
    "input_schema": {"type": "object", "properties": {"row": {"type": "string"}}, "required": ["row"]},
}


def run(cell: Cell) -> str:
    client = anthropic.Anthropic(base_url=cell.url, api_key=KEY, **cell.retries)
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(6):
        told = {"model": cell.model, "max_tokens": 2_000, "messages": messages, "tools": [TOOL]}
        if cell.is_stream:
            with client.messages.stream(**told) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**told)
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in answer.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": cell.append_row(**call.input)} for call in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    raise RuntimeError("too many turns")


serve(run)
