"""OpenAI Responses API: request parsing and validation, response bodies and streams."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider.chat import CREATED, forced
from rung.testing.provider.messages import ID_PLACEHOLDER
from rung.testing.provider.parsed_request import (
    InvalidRequest,
    LabWire,
    ParsedRequest,
    ParsedTool,
    ParsedTurn,
    as_list,
    as_table,
    count_tokens,
    first_int,
    joined_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.testing.provider.answers import AnswerBlock, ScriptedAnswer

_INCOMPLETE: Final = {"limit": "max_output_tokens", "refusal": "content_filter"}


def parse_request(body: dict[str, Any]) -> ParsedRequest:
    """Parse a request; raise InvalidRequest if OpenAI would reject it."""
    for name in ("model", "input"):
        if not body.get(name):
            raise InvalidRequest(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    raw_input = body["input"]
    items = [{"role": "user", "content": raw_input}] if isinstance(raw_input, str) else as_list(raw_input)
    turns = tuple(map(_turn, items))
    _check_tool_pairs(turns)
    text_format = as_table(as_table(body, "text"), "format")
    return ParsedRequest(
        wire=LabWire.RESPONSES,
        model=str(body["model"]),
        stream=bool(body.get("stream")),
        limit=first_int(body, "max_output_tokens"),
        tokens=count_tokens([raw_input, body.get("instructions"), body.get("tools")]) + 4 * len(turns),
        turns=turns,
        tools=tuple(
            ParsedTool(name=tool["name"], schema=tool.get("parameters") or {})
            for tool in as_list(body.get("tools"))
            if tool.get("type") == "function" and isinstance(tool.get("name"), str)
        ),
        forced=forced(body.get("tool_choice")),
        thinking=bool(body.get("reasoning")),
        schema={"json_object": {"type": "object"}, "json_schema": text_format.get("schema")}.get(
            str(text_format.get("type"))
        ),
        extra={name: body.get(name) for name in ("instructions", "metadata", "previous_response_id")},
    )


def _turn(item: dict[str, Any]) -> ParsedTurn:
    kind = item.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        return ParsedTurn(role="assistant", calls=(str(item.get("call_id")),))
    if kind in ("function_call_output", "custom_tool_call_output"):
        return ParsedTurn(role="tool", results=(str(item.get("call_id")),))
    if kind != "message":
        return ParsedTurn(role="assistant")
    return ParsedTurn(role=str(item.get("role", "user")), text=joined_text(as_list(item.get("content"))))


def _check_tool_pairs(turns: tuple[ParsedTurn, ...]) -> None:
    """Check that each tool call has an output, and each output a call."""
    called = {call for turn in turns for call in turn.calls}
    answered = {result for turn in turns for result in turn.results}
    for missing in sorted(called - answered):
        raise InvalidRequest(f"No tool output found for function call {missing}.", "input")
    for unmatched in sorted(answered - called):
        raise InvalidRequest(f"No tool call found for function call output with call_id {unmatched}.", "input")


def response_body(request: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    """Return the body of an unstreamed response."""
    reason = _INCOMPLETE.get("" if _refused(answer) else answer.stop)
    return {
        **_head(request),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [_item(block, index) for index, block in enumerate(answer.blocks)],
        "usage": _usage(request, answer),
    }


def _refused(answer: ScriptedAnswer) -> bool:
    return any(block.kind == "refusal" for block in answer.blocks)


def failed_body(request: ParsedRequest, code: str, message: str) -> dict[str, Any]:
    """Return the body of a failed response, as in the last event of its stream."""
    return {**_head(request), "status": "failed", "error": {"code": code, "message": message}}


def events(request: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """Yield the events of a streamed response, each with its token count."""
    for number, (name, data, tokens) in enumerate(_events(request, answer)):
        yield event(name, {**data, "sequence_number": number}), tokens


def _events(request: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[str, dict[str, Any], int]]:
    begun = {**_head(request), "status": "in_progress"}
    yield "response.created", {"response": begun}, 0
    yield "response.in_progress", {"response": begun}, 0
    for index, block in enumerate(answer.blocks):
        item = _item(block, index)
        at_item = {"item_id": item["id"], "output_index": index}
        yield "response.output_item.added", {"output_index": index, "item": _begun(item)}, 0
        yield from _inside(block, at_item)
        yield "response.output_item.done", {"output_index": index, "item": item}, 0
    ended = response_body(request, answer)
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
    """Encode one server-sent event."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data}, separators=(',', ':'))}\n\n".encode()


def _item(block: AnswerBlock, index: int) -> dict[str, Any]:
    status = "completed" if block.is_complete else "incomplete"
    if block.kind == "tool":
        return {
            "id": f"fc_lab{ID_PLACEHOLDER}_{index}", "type": "function_call", "status": status, "call_id": f"call_lab{ID_PLACEHOLDER}_{index}",
            "name": block.name, "arguments": block.text,
        }  # fmt: skip
    if block.kind == "thinking":
        summary = [_part(block, block.text)]
        return {
            "id": f"rs_lab{ID_PLACEHOLDER}_{index}",
            "type": "reasoning",
            "summary": summary,
            "encrypted_content": None,
        }
    content = [_part(block, block.text)]
    return {
        "id": f"msg_lab{ID_PLACEHOLDER}_{index}", "type": "message", "status": status, "role": "assistant", "content": content,
    }  # fmt: skip


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without content, as it is announced."""
    empty = {"arguments": "", "content": [], "summary": [], "status": "in_progress"}
    return {key: empty.get(key, value) for key, value in item.items()}


def _head(request: ParsedRequest) -> dict[str, Any]:
    return {
        "id": f"resp_lab{ID_PLACEHOLDER}", "object": "response", "created_at": CREATED, "status": "completed", "error": None,
        "incomplete_details": None, "max_output_tokens": request.limit, "model": request.model, "output": [],
        "parallel_tool_calls": True, "store": True, "temperature": 1.0, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled", "usage": None, "user": None,
        **request.extra,
    }  # fmt: skip


def _usage(request: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    thought = sum(len(block.tokens) for block in answer.blocks if block.kind == "thinking")
    return {
        "input_tokens": request.tokens, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answer.tokens, "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": request.tokens + answer.tokens,
    }  # fmt: skip
