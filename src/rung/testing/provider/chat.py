"""OpenAI's Chat Completions: requests as it reads and refuses them, answers as it writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

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

STOPS: Final = {"end": "stop", "limit": "length", "tool": "tool_calls", "refusal": "content_filter"}
CREATED: Final = 1_790_000_000
DONE: Final = b"data: [DONE]\n\n"


def read(body: dict[str, Any]) -> ParsedRequest:
    """A request, if it is one OpenAI would answer."""
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
    turns = tuple(_turn(message, at) for at, message in enumerate(body["messages"]))
    _paired(turns)
    choice = body.get("tool_choice")
    wanted = as_table(body, "response_format")
    return ParsedRequest(
        wire=LabWire.CHAT,
        model=body["model"],
        stream=bool(body.get("stream")),
        limit=whole(body, "max_completion_tokens", "max_tokens"),
        tokens=count([body["messages"], body.get("tools")]) + 4 * len(turns),
        turns=turns,
        tools=tuple(
            ParsedTool(name=function["name"], schema=function.get("parameters") or {})
            for tool in as_list(body.get("tools"))
            if isinstance(function := tool.get("function"), dict) and isinstance(function.get("name"), str)
        ),
        forced=forced(choice),
        usage=bool(as_table(body, "stream_options").get("include_usage")),
        schema=_schema(wanted),
    )


def _schema(wanted: dict[str, Any]) -> dict[str, Any] | None:
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    return as_table(wanted, "json_schema").get("schema") if wanted.get("type") == "json_schema" else None


def forced(choice: Any) -> str | None:
    """The tool that must be called: "" is any, None is none."""
    if isinstance(choice, dict):
        return str((as_table(choice, "function") or choice).get("name", ""))
    return "" if choice == "required" else None


def _turn(message: Any, at: int) -> ParsedTurn:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant", "tool", "function"):
        raise InvalidRequest(
            f"Invalid value: {role!r}. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and "
            "'developer'.",
            f"messages[{at}].role",
            "invalid_value",
        )
    return ParsedTurn(
        role=role,
        text=joined(as_list(message.get("content"))),
        calls=tuple(str(call.get("id")) for call in as_list(message.get("tool_calls"))),
        results=(str(message.get("tool_call_id")),) if role == "tool" else (),
    )


def _paired(turns: tuple[ParsedTurn, ...]) -> None:
    """Every call is answered before anybody else speaks, and no answer is without its call."""
    waiting: list[str] = []
    for at, turn in enumerate([*turns, ParsedTurn(role="user")]):
        if turn.role == "tool":
            if turn.results[0] not in waiting:
                raise InvalidRequest(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    f"messages.[{at}].role",
                )
            waiting.remove(turn.results[0])
        elif waiting:
            raise InvalidRequest(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}",
                f"messages.[{min(at, len(turns) - 1)}].role",
            )
        else:
            waiting = list(turn.calls)


def whole_body(asked: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    """An answer in one piece."""
    message: dict[str, Any] = {
        "role": "assistant", "content": _joined(answer, "text") or None, "refusal": _joined(answer, "refusal") or None,
        "annotations": [],
    }  # fmt: skip
    calls = [_call(block, at) for at, block in enumerate(answer.blocks) if block.kind == "tool"]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(answer)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, answer)}


def _stop(answer: ScriptedAnswer) -> str:
    refused = any(block.kind == "refusal" for block in answer.blocks)
    return "stop" if refused and answer.stop == "refusal" else STOPS[answer.stop]


def _joined(answer: ScriptedAnswer, kind: str) -> str:
    return "".join(block.text for block in answer.blocks if block.kind == kind)


def events(asked: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """An answer as a stream: each chunk, and how many tokens it brings."""
    yield _chunk(asked, {"role": "assistant", "content": "", "refusal": None}), 0
    place = 0
    for at, block in enumerate(answer.blocks):
        if block.kind == "thinking":
            continue  # this wire does not show it
        if block.kind == "tool":
            call = _call(block, at)
            start = {**call, "index": place, "function": {**call["function"], "arguments": ""}}
            yield _chunk(asked, {"tool_calls": [start]}), 0
        for token in block.tokens:
            yield _chunk(asked, _delta(block, token, place)), 1
        place += block.kind == "tool"
    yield _chunk(asked, {}, _stop(answer)), 0
    if asked.usage:
        head = _head(asked, "chat.completion.chunk")
        yield data({**head, "choices": [], "usage": _usage(asked, answer)}), 0
    yield DONE, 0


def data(chunk: dict[str, Any]) -> bytes:
    """One server-sent event without a name."""
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()


def _chunk(asked: ParsedRequest, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {**_head(asked, "chat.completion.chunk"), "choices": [choice]}
    return data({**chunk, "usage": None} if asked.usage else chunk)


def _delta(block: AnswerBlock, token: str, place: int) -> dict[str, Any]:
    if block.kind == "tool":
        return {"tool_calls": [{"index": place, "function": {"arguments": token}}]}
    return {"refusal" if block.kind == "refusal" else "content": token}


def _call(block: AnswerBlock, at: int) -> dict[str, Any]:
    function = {"name": block.name, "arguments": block.text}
    return {"id": f"call_lab{MARK}_{at}", "type": "function", "function": function}


def _head(asked: ParsedRequest, name: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-lab{MARK}", "object": name, "created": CREATED, "model": asked.model,
        "service_tier": "default", "system_fingerprint": "fp_lab",
    }  # fmt: skip


def _usage(asked: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    thought = sum(len(block.tokens) for block in answer.blocks if block.kind == "thinking")
    return {
        "prompt_tokens": asked.tokens, "completion_tokens": answer.tokens, "total_tokens": asked.tokens + answer.tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": thought, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }  # fmt: skip
