"""A little of Google's Gemini API: enough for one tool and one answer."""

from __future__ import annotations

from typing import Any

from bench.clients.provider.script import Asked, Turn, pieces
from bench.clients.provider.sse import CALL, END, TEXT, Part, event

USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 80, "totalTokenCount": 180}


def read(body: dict[str, Any], *, model: str, is_stream: bool) -> Asked:
    contents = body.get("contents") or [{}]
    parts = [part for content in contents for part in content.get("parts") or ()]
    found = [tool for group in body.get("tools") or () for tool in group.get("functionDeclarations") or ()]
    return Asked(
        wire="gemini",
        model=model,
        is_stream=is_stream,
        tools={tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") or {} for tool in found},
        results=sum("functionResponse" in part for part in parts),
        last_text="\n".join(str(part.get("text", "")) for part in contents[-1].get("parts") or ()),
    )


def _body(parts: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "gemini"}


def _reason(turn: Turn) -> str:
    return "MAX_TOKENS" if turn.is_limited else "STOP"


def _call(turn: Turn) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": turn.call.name, "args": turn.call.arguments}}] if turn.call else []


def whole(asked: Asked, turn: Turn, number: int) -> dict[str, Any]:
    text = [{"text": turn.text}] if turn.text else []
    return _body([*text, *_call(turn)], _reason(turn))


def stream(asked: Asked, turn: Turn, number: int) -> list[Part]:
    parts = [event(TEXT, _body([{"text": piece}], None), named=False) for piece in pieces(turn.text)]
    parts += [event(CALL, _body([call], None), named=False) for call in _call(turn)]
    parts.append(event(END, _body([{"text": ""}], _reason(turn)), named=False))
    return parts


def error(status: int, text: str) -> dict[str, Any]:
    kinds = {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 404: "NOT_FOUND"}
    return {"error": {"code": status, "message": text, "status": kinds.get(status, "INTERNAL")}}


def error_event() -> Part:
    return event(END, error(503, "The model is overloaded."), named=False)
