"""Anthropic Messages API: request parsing and validation, response bodies and streams."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider.answers import signature
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

ID_PLACEHOLDER: Final = "@" * 19  # replaced by the attempt's number, which makes ids unique
STOP_REASONS: Final = {"end": "end_turn", "limit": "max_tokens", "tool": "tool_use", "refusal": "refusal"}
PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'


def parse_request(body: dict[str, Any], *, count_only: bool = False) -> ParsedRequest:
    """Parse a request; raise InvalidRequest if Anthropic would reject it."""
    for name in ("model", "messages") if count_only else ("model", "max_tokens", "messages"):
        if name not in body:
            raise InvalidRequest(f"{name}: Field required")
    if not isinstance(body["messages"], list) or not body["messages"]:
        raise InvalidRequest("messages: at least one message is required")
    limit = first_int(body, "max_tokens")
    if not count_only and (limit is None or limit < 1):
        raise InvalidRequest("max_tokens: Input should be greater than or equal to 1")
    model = str(body["model"])
    turns = tuple(_turn(message, index, model) for index, message in enumerate(body["messages"]))
    _check_tool_pairs(turns)
    if turns[-1].role == "assistant":
        raise InvalidRequest(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    _check_thinking(body)
    choice = as_table(body, "tool_choice")
    return ParsedRequest(
        wire=LabWire.MESSAGES,
        model=model,
        stream=bool(body.get("stream")),
        limit=limit,
        tokens=count_tokens([body["messages"], body.get("system"), body.get("tools")]) + 4 * len(turns),
        turns=turns,
        tools=tuple(
            ParsedTool(name=tool["name"], schema=tool.get("input_schema") or {})
            for tool in as_list(body.get("tools"))
            if isinstance(tool.get("name"), str) and "input_schema" in tool
        ),
        forced={"any": "", "tool": str(choice.get("name"))}.get(str(choice.get("type"))),
        thinking=as_table(body, "thinking").get("type") in ("enabled", "adaptive"),
        schema=_schema(body),
    )


def _schema(body: dict[str, Any]) -> Any:
    output_format = as_table(as_table(body, "output_config"), "format") or as_table(body, "output_format")
    return output_format.get("schema") if output_format.get("type") == "json_schema" else None


def _turn(message: Any, index: int, model: str) -> ParsedTurn:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("user", "assistant", "system"):
        raise InvalidRequest(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    parts = as_list(message.get("content"))
    for position, part in enumerate(parts):
        if part.get("type") == "thinking" and part.get("signature") != signature(model):
            raise InvalidRequest(f"messages.{index}.content.{position}: Invalid `signature` in `thinking` block")
    return ParsedTurn(
        role=role,
        text=joined_text(parts),
        calls=tuple(str(part.get("id")) for part in parts if part.get("type") == "tool_use"),
        results=tuple(str(part.get("tool_use_id")) for part in parts if part.get("type") == "tool_result"),
    )


def _check_tool_pairs(turns: tuple[ParsedTurn, ...]) -> None:
    """Check that each tool call has its result in the next turn, and each result its call."""
    before: tuple[str, ...] = ()
    for index, turn in enumerate([*turns, ParsedTurn(role="user")]):
        missing = [call for call in before if call not in turn.results]
        if missing:
            raise InvalidRequest(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        unmatched = [position for position, result in enumerate(turn.results) if result not in before]
        if unmatched:
            raise InvalidRequest(
                f"messages.{index}.content.{unmatched[0]}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{turn.results[unmatched[0]]}. Each `tool_result` block must have a corresponding `tool_use` block in "
                "the previous message."
            )
        before = turn.calls


def _check_thinking(body: dict[str, Any]) -> None:
    """Check that thinking fits to the settings, and that a turn in which the model has called tools began with it."""
    mode, messages = as_table(body, "thinking").get("type"), body["messages"]
    edits = [str(edit.get("type")) for edit in as_list(as_table(body, "context_management").get("edits"))]
    for edit in edits:
        if edit.startswith("clear_thinking") and mode not in ("enabled", "adaptive"):
            raise InvalidRequest(f"`{edit}` strategy requires `thinking` to be enabled or adaptive")
    if mode != "enabled" or not any(part.get("type") == "tool_result" for part in as_list(messages[-1].get("content"))):
        return
    index = max(at for at, message in enumerate(messages) if message["role"] == "assistant")
    found = next((str(part.get("type")) for part in as_list(messages[index].get("content"))), "text")
    if found not in ("thinking", "redacted_thinking"):
        raise InvalidRequest(
            f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost set "
            "of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid "
            "this requirement, disable `thinking`."
        )


def response_body(request: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    """Return the body of an unstreamed response."""
    return {
        **_message(request),
        "content": [_content(block, index) for index, block in enumerate(answer.blocks)],
        "stop_reason": STOP_REASONS[answer.stop],
        "usage": _usage(request, answer.tokens),
    }


def events(request: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """Yield the events of a streamed response, each with its token count."""
    yield event("message_start", {"message": {**_message(request), "usage": _usage(request, 1)}}), 0
    for index, block in enumerate(answer.blocks):
        start = {**_content(block, index), **_EMPTY[block.kind]}
        yield event("content_block_start", {"index": index, "content_block": start}), 0
        if index == 0:
            yield PING, 0
        for token in block.tokens:
            yield event("content_block_delta", {"index": index, "delta": _delta(block, token)}), 1
        if block.kind == "thinking" and block.is_complete:
            signed = {"type": "signature_delta", "signature": block.signature}
            yield event("content_block_delta", {"index": index, "delta": signed}), 0
        yield event("content_block_stop", {"index": index}), 0
    if not answer.blocks:
        yield PING, 0
    delta = {"stop_reason": STOP_REASONS[answer.stop], "stop_sequence": None}
    yield event("message_delta", {"delta": delta, "usage": _usage(request, answer.tokens)}), 0
    yield event("message_stop", {}), 0


def event(name: str, data: dict[str, Any]) -> bytes:
    """Encode one server-sent event."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data}, separators=(',', ':'))}\n\n".encode()


def _message(request: ParsedRequest) -> dict[str, Any]:
    return {
        "id": f"msg_lab{ID_PLACEHOLDER}", "type": "message", "role": "assistant", "model": request.model, "content": [],
        "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip


def _usage(request: ParsedRequest, tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": request.tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": tokens, "service_tier": "standard",
    }  # fmt: skip


_EMPTY: Final[dict[str, dict[str, Any]]] = {
    "text": {"text": ""},
    "refusal": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool": {"input": {}},
}


def _content(block: AnswerBlock, index: int) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": block.text, "signature": block.signature if block.is_complete else ""}
    if block.kind == "tool":
        return {
            "type": "tool_use",
            "id": f"toolu_lab{ID_PLACEHOLDER}_{index}",
            "name": block.name,
            "input": _input(block),
        }
    return {"type": "text", "text": block.text}


def _input(block: AnswerBlock) -> Any:
    try:
        return json.loads(block.text)
    except ValueError:
        return {}  # an unstreamed response cannot carry invalid JSON arguments


def _delta(block: AnswerBlock, token: str) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "thinking_delta", "thinking": token}
    if block.kind == "tool":
        return {"type": "input_json_delta", "partial_json": token}
    return {"type": "text_delta", "text": token}
