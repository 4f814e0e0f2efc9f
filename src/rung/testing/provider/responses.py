"""OpenAI's Responses: requests as it reads and refuses them, answers as it writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider.chat import CREATED, forced
from rung.testing.provider.messages import MARK
from rung.testing.provider.parsed_request import (
    InvalidRequest,
    LabWire,
    ParsedRequest,
    ParsedTool,
    ParsedTurn,
    as_list,
    as_table,
    count,
    joined,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.testing.provider.answers import AnswerBlock, ScriptedAnswer

_INCOMPLETE: Final = {"limit": "max_output_tokens", "refusal": "content_filter"}


def read(body: dict[str, Any]) -> ParsedRequest:
    """A request, if it is one OpenAI would answer."""
    for name in ("model", "input"):
        if not body.get(name):
            raise InvalidRequest(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given)
    turns = tuple(map(_turn, items))
    _paired(turns)
    wanted = as_table(as_table(body, "text"), "format")
    return ParsedRequest(
        wire=LabWire.RESPONSES,
        model=str(body["model"]),
        stream=bool(body.get("stream")),
        limit=whole(body, "max_output_tokens"),
        tokens=count([given, body.get("instructions"), body.get("tools")]) + 4 * len(turns),
        turns=turns,
        tools=tuple(
            ParsedTool(name=tool["name"], schema=tool.get("parameters") or {})
            for tool in as_list(body.get("tools"))
            if tool.get("type") == "function" and isinstance(tool.get("name"), str)
        ),
        forced=forced(body.get("tool_choice")),
        thinking=bool(body.get("reasoning")),
        schema={"json_object": {"type": "object"}, "json_schema": wanted.get("schema")}.get(str(wanted.get("type"))),
        extra={name: body.get(name) for name in ("instructions", "metadata", "previous_response_id")},
    )


def _turn(item: dict[str, Any]) -> ParsedTurn:
    kind = item.get("type", "message")
    if kind == "function_call":
        return ParsedTurn(role="assistant", calls=(str(item.get("call_id")),))
    if kind == "function_call_output":
        return ParsedTurn(role="tool", results=(str(item.get("call_id")),))
    if kind != "message":
        return ParsedTurn(role="assistant")
    return ParsedTurn(role=str(item.get("role", "user")), text=joined(as_list(item.get("content"))))


def _paired(turns: tuple[ParsedTurn, ...]) -> None:
    """Every call has its output somewhere after it, and no output is without its call."""
    called = {call for turn in turns for call in turn.calls}
    answered = {result for turn in turns for result in turn.results}
    for missing in sorted(called - answered):
        raise InvalidRequest(f"No tool output found for function call {missing}.", "input")
    for stray in sorted(answered - called):
        raise InvalidRequest(f"No tool call found for function call output with call_id {stray}.", "input")


def whole_body(asked: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    """An answer in one piece."""
    reason = _INCOMPLETE.get("" if _refused(answer) else answer.stop)
    return {
        **_head(asked),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [_item(block, at) for at, block in enumerate(answer.blocks)],
        "usage": _usage(asked, answer),
    }


def _refused(answer: ScriptedAnswer) -> bool:
    return any(block.kind == "refusal" for block in answer.blocks)


def failed_body(asked: ParsedRequest, code: str, message: str) -> dict[str, Any]:
    """An answer that ended in an error, as the last event of its stream says it."""
    return {**_head(asked), "status": "failed", "error": {"code": code, "message": message}}


def events(asked: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """An answer as a stream: each event, and how many tokens it brings."""
    for number, (name, data, tokens) in enumerate(_events(asked, answer)):
        yield event(name, {**data, "sequence_number": number}), tokens


def _events(asked: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[str, dict[str, Any], int]]:
    begun = {**_head(asked), "status": "in_progress"}
    yield "response.created", {"response": begun}, 0
    yield "response.in_progress", {"response": begun}, 0
    for at, block in enumerate(answer.blocks):
        item = _item(block, at)
        at_item = {"item_id": item["id"], "output_index": at}
        yield "response.output_item.added", {"output_index": at, "item": _begun(item)}, 0
        yield from _inside(block, at_item)
        yield "response.output_item.done", {"output_index": at, "item": item}, 0
    ended = whole_body(asked, answer)
    yield f"response.{ended['status']}", {"response": ended}, 0


def _inside(block: AnswerBlock, at_item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], int]]:
    if block.kind == "tool":
        for token in block.tokens:
            yield "response.function_call_arguments.delta", {**at_item, "delta": token}, 1
        done = {**at_item, "name": block.name, "arguments": block.text}
        yield "response.function_call_arguments.done", done, 0
        return
    kind, at_part, key = _PARTS[block.kind]
    begun, ended = _part(block, ""), _part(block, block.text)
    part_event = "reasoning_summary_part" if block.kind == "thinking" else "content_part"
    yield f"response.{part_event}.added", {**at_item, at_part: 0, "part": begun}, 0
    plain: dict[str, Any] = {"logprobs": []} if block.kind == "text" else {}
    for token in block.tokens:
        yield f"response.{kind}.delta", {**at_item, at_part: 0, "delta": token, **plain}, 1
    yield f"response.{kind}.done", {**at_item, at_part: 0, key: block.text, **plain}, 0
    yield f"response.{part_event}.done", {**at_item, at_part: 0, "part": ended}, 0


_PARTS: Final = {
    "text": ("output_text", "content_index", "text"),
    "refusal": ("refusal", "content_index", "refusal"),
    "thinking": ("reasoning_summary_text", "summary_index", "text"),
}


def _part(block: AnswerBlock, text: str) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "summary_text", "text": text}
    if block.kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def event(name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data}, separators=(',', ':'))}\n\n".encode()


def _item(block: AnswerBlock, at: int) -> dict[str, Any]:
    status = "completed" if block.whole else "incomplete"
    if block.kind == "tool":
        return {
            "id": f"fc_lab{MARK}_{at}", "type": "function_call", "status": status, "call_id": f"call_lab{MARK}_{at}",
            "name": block.name, "arguments": block.text,
        }  # fmt: skip
    if block.kind == "thinking":
        summary = [_part(block, block.text)]
        return {"id": f"rs_lab{MARK}_{at}", "type": "reasoning", "summary": summary, "encrypted_content": None}
    content = [_part(block, block.text)]
    return {
        "id": f"msg_lab{MARK}_{at}", "type": "message", "status": status, "role": "assistant", "content": content,
    }  # fmt: skip


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """An item before anything was said in it."""
    empty = {"arguments": "", "content": [], "summary": [], "status": "in_progress"}
    return {key: empty.get(key, value) for key, value in item.items()}


def _head(asked: ParsedRequest) -> dict[str, Any]:
    return {
        "id": f"resp_lab{MARK}", "object": "response", "created_at": CREATED, "status": "completed", "error": None,
        "incomplete_details": None, "max_output_tokens": asked.limit, "model": asked.model, "output": [],
        "parallel_tool_calls": True, "store": True, "temperature": 1.0, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled", "usage": None, "user": None,
        **asked.extra,
    }  # fmt: skip


def _usage(asked: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    thought = sum(len(block.tokens) for block in answer.blocks if block.kind == "thinking")
    return {
        "input_tokens": asked.tokens, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answer.tokens, "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": asked.tokens + answer.tokens,
    }  # fmt: skip
