"""OpenAI's Chat Completions API, as OpenAI and compatible servers speak it."""

from __future__ import annotations

import json
from typing import Any

from bench.clients.provider.script import Asked, Turn, pieces
from bench.clients.provider.sse import CALL, END, START, TEXT, Part, event

USAGE = {"prompt_tokens": 100, "completion_tokens": 80, "total_tokens": 180}


def read(body: dict[str, Any]) -> Asked:
    messages = body.get("messages") or [{}]
    functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
    return Asked(
        wire="chat",
        model=str(body.get("model")),
        is_stream=bool(body.get("stream")),
        tools={tool["name"]: tool.get("parameters") or {} for tool in functions if "name" in tool},
        results=sum(is_result(message) for message in messages),
        last_text=_text(messages[-1]),
    )


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


def is_result(message: dict[str, Any]) -> bool:
    """Return whether a message has a tool's result; smolagents sends them as text of the user."""
    return message.get("role") == "tool" or (
        message.get("role") == "user" and _text(message).startswith("Observation:")
    )


def _reason(turn: Turn) -> str:
    return "length" if turn.is_limited else "tool_calls" if turn.call else "stop"


def _call(turn: Turn, number: int, arguments: str) -> dict[str, Any]:
    name = turn.call.name if turn.call else ""
    return {"id": f"call_{number:020}", "type": "function", "function": {"name": name, "arguments": arguments}}


def whole(asked: Asked, turn: Turn, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if turn.call:
        message["tool_calls"] = [_call(turn, number, json.dumps(turn.call.arguments))]
    choice = {"index": 0, "message": message, "finish_reason": _reason(turn), "logprobs": None}
    return {**_head(asked, number, "chat.completion"), "choices": [choice], "usage": USAGE}


def _head(asked: Asked, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number:020}", "object": kind, "created": 1_763_000_000, "model": asked.model}


def stream(asked: Asked, turn: Turn, number: int) -> list[Part]:
    head = _head(asked, number, "chat.completion.chunk")

    def chunk(kind: str, delta: dict[str, Any], reason: str | None = None) -> Part:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event(kind, {**head, "choices": [choice], "usage": None}, named=False)

    parts = [chunk(START, {"role": "assistant", "content": ""})]
    parts += [chunk(TEXT, {"content": piece}) for piece in pieces(turn.text)]
    if turn.call:
        parts.append(chunk(CALL, {"tool_calls": [{"index": 0, **_call(turn, number, "")}]}))
        for piece in pieces(json.dumps(turn.call.arguments)):
            parts.append(chunk(CALL, {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    parts.append(chunk(END, {}, _reason(turn)))
    parts.append(event(END, {**head, "choices": [], "usage": USAGE}, named=False))
    parts.append(Part(END, b"data: [DONE]\n\n"))
    return parts


def error(status: int, text: str) -> dict[str, Any]:
    kind = {429: "requests", 404: "invalid_request_error"}.get(status, "server_error")
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def error_event() -> Part:
    return event(END, error(500, "The server had an error while processing your request."), named=False)
