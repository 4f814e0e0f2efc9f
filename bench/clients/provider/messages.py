"""Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import Any

from bench.clients.provider.script import Asked, Turn, pieces
from bench.clients.provider.sse import CALL, END, START, TEXT, Part, event


def read(body: dict[str, Any]) -> Asked:
    blocks = [block for message in body.get("messages") or () for block in _blocks(message)]
    last = _blocks((body.get("messages") or [{}])[-1])
    return Asked(
        wire="messages",
        model=str(body.get("model")),
        is_stream=bool(body.get("stream")),
        tools={tool["name"]: tool.get("input_schema") or {} for tool in body.get("tools") or () if "name" in tool},
        results=sum(block.get("type") == "tool_result" or _is_observation(block) for block in blocks),
        last_text="\n".join(str(block.get("text", "")) for block in last),
    )


def _is_observation(block: dict[str, Any]) -> bool:
    """Return whether a text is a tool's result, as smolagents sends it."""
    return str(block.get("text", "")).startswith("Observation:")


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _message(asked: Asked, number: int, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": f"msg_{number:024}", "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage, **more,
    }  # fmt: skip


def _reason(turn: Turn) -> str:
    return "max_tokens" if turn.is_limited else "tool_use" if turn.call else "end_turn"


def whole(asked: Asked, turn: Turn, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    if turn.call:
        content.append(
            {"type": "tool_use", "id": f"toolu_{number:024}", "name": turn.call.name, "input": turn.call.arguments}
        )
    return _message(asked, number, content=content, stop_reason=_reason(turn))


def stream(asked: Asked, turn: Turn, number: int) -> list[Part]:
    parts = [event(START, {"type": "message_start", "message": _message(asked, number)})]
    parts.append(event(START, {"type": "ping"}))
    index = 0
    if turn.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(turn.text)]
        parts += _block(TEXT, index, {"type": "text", "text": ""}, deltas)
        index += 1
    if turn.call:
        start = {"type": "tool_use", "id": f"toolu_{number:024}", "name": turn.call.name, "input": {}}
        arguments = pieces(json.dumps(turn.call.arguments))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in arguments]
        parts += _block(CALL, index, start, deltas)
    usage = {"output_tokens": 80}
    delta = {"stop_reason": _reason(turn), "stop_sequence": None}
    parts.append(event(END, {"type": "message_delta", "delta": delta, "usage": usage}))
    parts.append(event(END, {"type": "message_stop"}))
    return parts


def _block(kind: str, index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[Part]:
    return [
        event(kind, {"type": "content_block_start", "index": index, "content_block": start}),
        *(event(kind, {"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas),
        event(END if kind == TEXT else kind, {"type": "content_block_stop", "index": index}),
    ]


def error(status: int, text: str) -> dict[str, Any]:
    kinds = {429: "rate_limit_error", 529: "overloaded_error", 404: "not_found_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": text}}


def error_event() -> Part:
    return event(END, error(529, "Overloaded"))
