"""OpenAI's Responses API."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from bench.clients.provider import chat
from bench.clients.provider.script import Asked, Turn, pieces
from bench.clients.provider.sse import CALL, END, START, TEXT, Part, event

if TYPE_CHECKING:
    from collections.abc import Callable

    Emit = Callable[..., Part]

USAGE = {
    "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 80, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 180,
}  # fmt: skip
error = chat.error


def read(body: dict[str, Any]) -> Asked:
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    content = (items or [{}])[-1].get("content") or ""
    return Asked(
        wire="responses",
        model=str(body.get("model")),
        is_stream=bool(body.get("stream")),
        tools={tool["name"]: tool.get("parameters") or {} for tool in tools},
        results=sum(item.get("type") == "function_call_output" or chat.is_result(item) for item in items),
        last_text=content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content),
    )


def _response(asked: Asked, number: int, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp_{number:048}", "object": "response", "created_at": 1_763_000_000, "status": status, "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None, "max_output_tokens": None, "model": asked.model, "output": output,
        "parallel_tool_calls": True, "previous_response_id": None, "reasoning": {"effort": None, "summary": None},
        "store": False, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "usage": None if status == "in_progress" else USAGE, "metadata": {},
    }  # fmt: skip


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(number: int, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": f"msg_{number:048}", "type": "message", "role": "assistant", "status": status, "content": content}


def _call(turn: Turn, number: int, status: str, arguments: str) -> dict[str, Any]:
    return {
        "id": f"fc_{number:048}", "type": "function_call", "status": status, "arguments": arguments,
        "call_id": f"call_{number:020}", "name": turn.call.name if turn.call else "",
    }  # fmt: skip


def _output(turn: Turn, number: int) -> list[dict[str, Any]]:
    status = "incomplete" if turn.is_limited else "completed"
    items = [_message(number, status, [_text(turn.text)])] if turn.text else []
    if turn.call:
        items.append(_call(turn, number, status, json.dumps(turn.call.arguments)))
    return items


def whole(asked: Asked, turn: Turn, number: int) -> dict[str, Any]:
    return _response(asked, number, "incomplete" if turn.is_limited else "completed", _output(turn, number))


def stream(asked: Asked, turn: Turn, number: int) -> list[Part]:
    numbers = count()

    def emit(kind: str, name: str, /, **body: Any) -> Part:
        return event(kind, {"type": name, "sequence_number": next(numbers), **body})

    begun = _response(asked, number, "in_progress", [])
    parts = [emit(START, f"response.{name}", response=begun) for name in ("created", "in_progress")]
    output = _output(turn, number)
    if turn.text:
        parts += _text_parts(emit, turn, output[0], number)
    if turn.call:
        parts += _call_parts(emit, turn, output[-1], len(output) - 1, number)
    done = whole(asked, turn, number)
    parts.append(emit(END, f"response.{done['status']}", response=done))
    return parts


def _text_parts(emit: Emit, turn: Turn, item: dict[str, Any], number: int) -> list[Part]:
    where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    parts = [emit(TEXT, "response.output_item.added", output_index=0, item=_message(number, "in_progress", []))]
    parts.append(emit(TEXT, "response.content_part.added", **where, part=_text("")))
    parts += [
        emit(TEXT, "response.output_text.delta", **where, delta=piece, logprobs=[]) for piece in pieces(turn.text)
    ]
    parts.append(emit(END, "response.output_text.done", **where, text=turn.text, logprobs=[]))
    parts.append(emit(END, "response.content_part.done", **where, part=_text(turn.text)))
    parts.append(emit(END, "response.output_item.done", output_index=0, item=item))
    return parts


def _call_parts(emit: Emit, turn: Turn, item: dict[str, Any], index: int, number: int) -> list[Part]:
    where = {"item_id": item["id"], "output_index": index}
    begun = _call(turn, number, "in_progress", "")
    parts = [emit(CALL, "response.output_item.added", output_index=index, item=begun)]
    for piece in pieces(item["arguments"]):
        parts.append(emit(CALL, "response.function_call_arguments.delta", **where, delta=piece))
    done = emit(CALL, "response.function_call_arguments.done", **where, name=item["name"], arguments=item["arguments"])
    return [*parts, done, emit(CALL, "response.output_item.done", output_index=index, item=item)]


def error_event() -> Part:
    body = {
        "type": "error",
        "sequence_number": 90,
        "code": "server_error",
        "message": "The server had an error",
        "param": None,
    }
    return event(END, body)
