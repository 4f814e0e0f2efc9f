"""OpenAI Chat Completions API: request parsing and validation, response bodies and streams."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

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

STOP_REASONS: Final = {"end": "stop", "limit": "length", "tool": "tool_calls", "refusal": "content_filter"}
CREATED: Final = 1_790_000_000
DONE: Final = b"data: [DONE]\n\n"


def parse_request(body: dict[str, Any]) -> ParsedRequest:
    """Parse a request; raise InvalidRequest if OpenAI would reject it."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidRequest("you must provide a model parameter")
    if not isinstance(body.get("messages"), list):
        raise InvalidRequest("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    if not body["messages"]:
        raise InvalidRequest(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            "messages",
            "empty_array",
        )
    turns = tuple(_turn(message, index) for index, message in enumerate(body["messages"]))
    _check_tool_pairs(turns)
    choice = body.get("tool_choice")
    response_format = as_table(body, "response_format")
    return ParsedRequest(
        wire=LabWire.CHAT,
        model=body["model"],
        stream=bool(body.get("stream")),
        limit=first_int(body, "max_completion_tokens", "max_tokens"),
        tokens=count_tokens([body["messages"], body.get("tools")]) + 4 * len(turns),
        turns=turns,
        tools=tuple(
            ParsedTool(name=function["name"], schema=function.get("parameters") or {})
            for tool in as_list(body.get("tools"))
            if isinstance(function := tool.get("function"), dict) and isinstance(function.get("name"), str)
        ),
        forced=forced(choice),
        usage=bool(as_table(body, "stream_options").get("include_usage")),
        schema=_schema(response_format),
    )


def _schema(response_format: dict[str, Any]) -> dict[str, Any] | None:
    if response_format.get("type") == "json_object":
        return {"type": "object"}
    return (
        as_table(response_format, "json_schema").get("schema") if response_format.get("type") == "json_schema" else None
    )


def forced(choice: Any) -> str | None:
    """Return the tool that must be called; "" means any tool, None means no tool."""
    if isinstance(choice, dict):
        return str((as_table(choice, "function") or choice).get("name", ""))
    return "" if choice == "required" else None


def _turn(message: Any, index: int) -> ParsedTurn:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant", "tool", "function"):
        raise InvalidRequest(
            f"Invalid value: {role!r}. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and "
            "'developer'.",
            f"messages[{index}].role",
            "invalid_value",
        )
    return ParsedTurn(
        role=role,
        text=joined_text(as_list(message.get("content"))),
        calls=tuple(str(call.get("id")) for call in as_list(message.get("tool_calls"))),
        results=(str(message.get("tool_call_id")),) if role == "tool" else (),
    )


def _check_tool_pairs(turns: tuple[ParsedTurn, ...]) -> None:
    """Check that tool results directly follow their calls, and each result has a call."""
    pending: list[str] = []
    for index, turn in enumerate([*turns, ParsedTurn(role="user")]):
        if turn.role == "tool":
            if turn.results[0] not in pending:
                raise InvalidRequest(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    f"messages.[{index}].role",
                )
            pending.remove(turn.results[0])
        elif pending:
            raise InvalidRequest(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(pending)}",
                f"messages.[{min(index, len(turns) - 1)}].role",
            )
        else:
            pending = list(turn.calls)


def response_body(request: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    """Return the body of an unstreamed response."""
    message: dict[str, Any] = {
        "role": "assistant", "content": _joined(answer, "text") or None, "refusal": _joined(answer, "refusal") or None,
        "annotations": [],
    }  # fmt: skip
    calls = [_call(block, index) for index, block in enumerate(answer.blocks) if block.kind == "tool"]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(answer)}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _usage(request, answer)}


def _stop(answer: ScriptedAnswer) -> str:
    refused = any(block.kind == "refusal" for block in answer.blocks)
    return "stop" if refused and answer.stop == "refusal" else STOP_REASONS[answer.stop]


def _joined(answer: ScriptedAnswer, kind: str) -> str:
    return "".join(block.text for block in answer.blocks if block.kind == kind)


def events(request: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """Yield the chunks of a streamed response, each with its token count."""
    yield _chunk(request, {"role": "assistant", "content": "", "refusal": None}), 0
    tool_index = 0
    for index, block in enumerate(answer.blocks):
        if block.kind == "thinking":
            continue  # this API does not return thinking
        if block.kind == "tool":
            call = _call(block, index)
            start = {**call, "index": tool_index, "function": {**call["function"], "arguments": ""}}
            yield _chunk(request, {"tool_calls": [start]}), 0
        for token in block.tokens:
            yield _chunk(request, _delta(block, token, tool_index)), 1
        tool_index += block.kind == "tool"
    yield _chunk(request, {}, _stop(answer)), 0
    if request.usage:
        head = _head(request, "chat.completion.chunk")
        yield data({**head, "choices": [], "usage": _usage(request, answer)}), 0
    yield DONE, 0


def data(chunk: dict[str, Any]) -> bytes:
    """Encode one server-sent event without a name."""
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()


def _chunk(request: ParsedRequest, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {**_head(request, "chat.completion.chunk"), "choices": [choice]}
    return data({**chunk, "usage": None} if request.usage else chunk)


def _delta(block: AnswerBlock, token: str, tool_index: int) -> dict[str, Any]:
    if block.kind == "tool":
        return {"tool_calls": [{"index": tool_index, "function": {"arguments": token}}]}
    return {"refusal" if block.kind == "refusal" else "content": token}


def _call(block: AnswerBlock, index: int) -> dict[str, Any]:
    function = {"name": block.name, "arguments": block.text}
    return {"id": f"call_lab{ID_PLACEHOLDER}_{index}", "type": "function", "function": function}


def _head(request: ParsedRequest, name: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-lab{ID_PLACEHOLDER}", "object": name, "created": CREATED, "model": request.model,
        "service_tier": "default", "system_fingerprint": "fp_lab",
    }  # fmt: skip


def _usage(request: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    thought = sum(len(block.tokens) for block in answer.blocks if block.kind == "thinking")
    return {
        "prompt_tokens": request.tokens, "completion_tokens": answer.tokens, "total_tokens": request.tokens + answer.tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": thought, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }  # fmt: skip
