"""openai: hand-written loops over Chat Completions and Responses."""

from __future__ import annotations

import json
from typing import Any

import openai
from loop import FUNCTION, KEY, PROMPT, Cell, serve, take_turns


def run(cell: Cell) -> str:
    client = openai.OpenAI(base_url=cell.v1, api_key=KEY, **cell.retries)
    said: list[Any] = [{"role": "user", "content": PROMPT}]
    return take_turns(lambda: (ask_chat if cell.wire == "chat" else ask_responses)(client, cell, said))


def ask_chat(client: openai.OpenAI, cell: Cell, messages: list[Any]) -> str | None:
    told = {"model": cell.model, "messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}
    said = cell.ask(client.chat.completions, told, "get_final_completion").choices[0].message
    if not said.tool_calls:
        return said.content or ""
    messages.append(said.model_dump(include={"role", "content", "tool_calls"}))
    for call in said.tool_calls:
        done = cell.append_row(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": done})
    return None


def ask_responses(client: openai.OpenAI, cell: Cell, items: list[Any]) -> str | None:
    tool = {"type": "function", "strict": False, **FUNCTION}
    told = {"model": cell.model, "input": items, "tools": [tool], "store": False}
    answer = cell.ask(client.responses, told, "get_final_response")
    calls = [item for item in answer.output if item.type == "function_call"]
    if not calls:
        return str(answer.output_text)
    items += [item.model_dump(exclude={"parsed_arguments", "parsed"}) for item in answer.output]
    for call in calls:
        done = cell.append_row(**json.loads(call.arguments))
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": done})
    return None


serve(run)
