"""Anthropic's Messages: requests as it reads and refuses them, answers and errors as it writes them."""

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
    count,
    joined,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.testing.provider.answers import AnswerBlock, ScriptedAnswer

MARK: Final = "@" * 19  # where the number of the attempt is put, which makes every id its own
STOPS: Final = {"end": "end_turn", "limit": "max_tokens", "tool": "tool_use", "refusal": "refusal"}
PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'


def read(body: dict[str, Any], *, counting: bool = False) -> ParsedRequest:
    """A request, if it is one Anthropic would answer."""
    for name in ("model", "messages") if counting else ("model", "max_tokens", "messages"):
        if name not in body:
            raise InvalidRequest(f"{name}: Field required")
    if not isinstance(body["messages"], list) or not body["messages"]:
        raise InvalidRequest("messages: at least one message is required")
    limit = whole(body, "max_tokens")
    if not counting and (limit is None or limit < 1):
        raise InvalidRequest("max_tokens: Input should be greater than or equal to 1")
    model = str(body["model"])
    turns = tuple(_turn(message, at, model) for at, message in enumerate(body["messages"]))
    _paired(turns)
    if turns[-1].role == "assistant":
        raise InvalidRequest(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    choice = as_table(body, "tool_choice")
    return ParsedRequest(
        wire=LabWire.MESSAGES,
        model=model,
        stream=bool(body.get("stream")),
        limit=limit,
        tokens=count([body["messages"], body.get("system"), body.get("tools")]) + 4 * len(turns),
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
    wanted = as_table(as_table(body, "output_config"), "format") or as_table(body, "output_format")
    return wanted.get("schema") if wanted.get("type") == "json_schema" else None


def _turn(message: Any, at: int, model: str) -> ParsedTurn:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("user", "assistant", "system"):
        raise InvalidRequest(f"messages.{at}.role: Input should be 'user' or 'assistant'")
    parts = as_list(message.get("content"))
    for place, part in enumerate(parts):
        if part.get("type") == "thinking" and part.get("signature") != signature(model):
            raise InvalidRequest(f"messages.{at}.content.{place}: Invalid `signature` in `thinking` block")
    return ParsedTurn(
        role=role,
        text=joined(parts),
        calls=tuple(str(part.get("id")) for part in parts if part.get("type") == "tool_use"),
        results=tuple(str(part.get("tool_use_id")) for part in parts if part.get("type") == "tool_result"),
    )


def _paired(turns: tuple[ParsedTurn, ...]) -> None:
    """Every call has its result in the next turn, and no result is without its call."""
    before: tuple[str, ...] = ()
    for at, turn in enumerate([*turns, ParsedTurn(role="user")]):
        missing = [call for call in before if call not in turn.results]
        if missing:
            raise InvalidRequest(
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        stray = [place for place, result in enumerate(turn.results) if result not in before]
        if stray:
            raise InvalidRequest(
                f"messages.{at}.content.{stray[0]}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{turn.results[stray[0]]}. Each `tool_result` block must have a corresponding `tool_use` block in "
                "the previous message."
            )
        before = turn.calls


def whole_body(asked: ParsedRequest, answer: ScriptedAnswer) -> dict[str, Any]:
    """An answer in one piece."""
    return {
        **_message(asked),
        "content": [_content(block, at) for at, block in enumerate(answer.blocks)],
        "stop_reason": STOPS[answer.stop],
        "usage": _usage(asked, answer.tokens),
    }


def events(asked: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """An answer as a stream: each event, and how many tokens it brings."""
    yield event("message_start", {"message": {**_message(asked), "usage": _usage(asked, 1)}}), 0
    for at, block in enumerate(answer.blocks):
        start = {**_content(block, at), **_EMPTY[block.kind]}
        yield event("content_block_start", {"index": at, "content_block": start}), 0
        if at == 0:
            yield PING, 0
        for token in block.tokens:
            yield event("content_block_delta", {"index": at, "delta": _delta(block, token)}), 1
        if block.kind == "thinking" and block.whole:
            signed = {"type": "signature_delta", "signature": block.signature}
            yield event("content_block_delta", {"index": at, "delta": signed}), 0
        yield event("content_block_stop", {"index": at}), 0
    if not answer.blocks:
        yield PING, 0
    delta = {"stop_reason": STOPS[answer.stop], "stop_sequence": None}
    yield event("message_delta", {"delta": delta, "usage": _usage(asked, answer.tokens)}), 0
    yield event("message_stop", {}), 0


def event(name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data}, separators=(',', ':'))}\n\n".encode()


def _message(asked: ParsedRequest) -> dict[str, Any]:
    return {
        "id": f"msg_lab{MARK}", "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip


def _usage(asked: ParsedRequest, tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": asked.tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": tokens, "service_tier": "standard",
    }  # fmt: skip


_EMPTY: Final[dict[str, dict[str, Any]]] = {
    "text": {"text": ""},
    "refusal": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool": {"input": {}},
}


def _content(block: AnswerBlock, at: int) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": block.text, "signature": block.signature if block.whole else ""}
    if block.kind == "tool":
        return {"type": "tool_use", "id": f"toolu_lab{MARK}_{at}", "name": block.name, "input": _input(block)}
    return {"type": "text", "text": block.text}


def _input(block: AnswerBlock) -> Any:
    try:
        return json.loads(block.text)
    except ValueError:
        return {}  # an answer in one piece has no place for arguments that are no JSON


def _delta(block: AnswerBlock, token: str) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "thinking_delta", "thinking": token}
    if block.kind == "tool":
        return {"type": "input_json_delta", "partial_json": token}
    return {"type": "text_delta", "text": token}
