"""Client of Anthropic's Messages API, with its SDK."""

from __future__ import annotations

from typing import Any

import anthropic

from tests.gateway.cross_wire.talk import (
    Call,
    Heard,
    Pdf,
    Result,
    ResultTurn,
    Said,
    Talk,
    TalkTurn,
    UserTurn,
)

STOPS = {"end_turn": "end", "tool_use": "calls", "refusal": "refusal", "max_tokens": "limit", "stop_sequence": "end"}


def request(talk: Talk) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": talk.model,
        "max_tokens": talk.max_tokens,
        "messages": [_message(turn) for turn in talk.turns],
    }
    if talk.system:
        body["system"] = talk.system
    if talk.tools:
        body["tools"] = [{"name": name, "description": name, "input_schema": schema} for name, schema in talk.tools]
    if talk.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": talk.schema}}
    if talk.stop:
        body["stop_sequences"] = list(talk.stop)
    return body


def _message(turn: TalkTurn) -> dict[str, Any]:
    if isinstance(turn, UserTurn):
        return {"role": "user", "content": [_block(said) for said in turn.said]}
    if isinstance(turn, ResultTurn):
        return {"role": "user", "content": [_result(result) for result in turn.results]}
    blocks: list[Any] = [{"type": "text", "text": turn.text}] if turn.text else []
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in turn.calls]
    return {"role": "assistant", "content": blocks}


def _block(said: Said) -> dict[str, Any]:
    if isinstance(said, str):
        return {"type": "text", "text": said}
    if isinstance(said, Pdf):
        source = {"type": "base64", "media_type": "application/pdf", "data": said.data}
        return {"type": "document", "source": source, "title": "report.pdf"}
    if said.url:
        return {"type": "image", "source": {"type": "url", "url": said.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": said.data}}


def _result(result: Result) -> dict[str, Any]:
    content = [_block(said) for said in result.said]
    block = {"type": "tool_result", "tool_use_id": result.call, "content": content}
    return {**block, "is_error": True} if result.is_error else block


def go_on(body: dict[str, Any], heard: Heard, turn: UserTurn | ResultTurn) -> dict[str, Any]:
    """Return the next request, with the answer as the SDK gave it."""
    answer = {"role": "assistant", "content": heard.own.content}
    return {**body, "messages": [*body["messages"], answer, _message(turn)]}


def send(url: str, body: dict[str, Any], *, stream: bool) -> Heard:
    with anthropic.Anthropic(base_url=url, api_key="sk-ant-own", max_retries=0, timeout=60.0) as client:
        if stream:
            with client.messages.stream(**body) as events:
                streamed = "".join(events.text_stream)
                message: Any = events.get_final_message()
        else:
            message = client.messages.create(**body)
            streamed = None
    text = "".join(block.text for block in message.content if block.type == "text")
    assert streamed in (None, text)
    calls = tuple(Call(block.id, block.name, block.input) for block in message.content if block.type == "tool_use")
    return Heard(text, calls, STOPS[message.stop_reason], message, text if message.stop_reason == "refusal" else "")
