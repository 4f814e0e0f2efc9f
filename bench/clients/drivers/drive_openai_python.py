"""openai: hand-written loops over Chat Completions and Responses."""

from __future__ import annotations

import json
from typing import Any

import openai
from loop import KEY, PROMPT, Cell, serve

PARAMETERS = {"type": "object", "properties": {"row": {"type": "string"}}, "required": ["row"]}
FUNCTION = {"name": "append_row", "description": "Append a row.", "parameters": PARAMETERS}


def run(cell: Cell) -> str:
    client = openai.OpenAI(base_url=cell.v1, api_key=KEY, **cell.retries)
    return (run_chat if cell.wire == "chat" else run_responses)(client, cell)


def run_chat(client: openai.OpenAI, cell: Cell) -> str:
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(6):
        told: Any = {"model": cell.model, "messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}
        if cell.is_stream:
            with client.chat.completions.stream(**told) as stream:
                choice = stream.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**told).choices[0]
        said = choice.message
        if not said.tool_calls:
            return said.content or ""
        messages.append(said.model_dump(include={"role", "content", "tool_calls"}))
        for call in said.tool_calls:
            done = cell.append_row(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": done})
    raise RuntimeError("too many turns")


def run_responses(client: openai.OpenAI, cell: Cell) -> str:
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(6):
        tool = {"type": "function", "strict": False, **FUNCTION}
        told: Any = {"model": cell.model, "input": items, "tools": [tool], "store": False}
        if cell.is_stream:
            with client.responses.stream(**told) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**told)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        items += [item.model_dump(exclude={"parsed_arguments", "parsed"}) for item in answer.output]
        for call in calls:
            done = cell.append_row(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": done})
    raise RuntimeError("too many turns")


serve(run)
