"""Events of a response that came whole, for a client that is already receiving a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.wires.wire_json import data_event, named_event, object_field, object_list, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

Body = dict[str, Any]


def message_events(response: Body) -> bytes:
    """Return the events of a message of Anthropic's Messages API."""
    start = {**response, "content": [], "stop_reason": None, "stop_sequence": None}
    events: list[Body] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(object_list(response, "content")):
        empty, deltas = _block_parts(block)
        events.append({"type": "content_block_start", "index": index, "content_block": {**block, **empty}})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {key: response.get(key) for key in ("stop_reason", "stop_sequence")}
    events.append({"type": "message_delta", "delta": end, "usage": object_field(response, "usage")})
    events.append({"type": "message_stop"})
    return b"".join(named_event(event["type"], event) for event in events)


def _block_parts(block: Body) -> tuple[Body, list[Body]]:
    """Return the empty fields of a block's start, and its deltas."""
    kind = block.get("type")
    if kind == "text":
        return {"text": ""}, [{"type": "text_delta", "text": block.get("text")}]
    if kind == "thinking":
        deltas: list[Body] = [{"type": "thinking_delta", "thinking": block.get("thinking")}]
        deltas.append({"type": "signature_delta", "signature": block.get("signature")})
        return {"thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return {"input": {}}, [{"type": "input_json_delta", "partial_json": to_json(object_field(block, "input"))}]
    return {}, []


def chat_events(response: Body) -> bytes:
    """Return the chunks of a completion of OpenAI's Chat Completions API."""
    head = {key: value for key, value in response.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    chunks: list[Body] = []
    for choice in object_list(response, "choices"):
        message, index = object_field(choice, "message"), choice.get("index", 0)
        delta = {key: value for key, value in message.items() if value and key != "tool_calls"}
        calls = [{**call, "index": at} for at, call in enumerate(object_list(message, "tool_calls"))]
        parts = [(delta, None), ({"tool_calls": calls}, None), ({}, choice.get("finish_reason"))]
        chunks += [
            {**head, "choices": [{"index": index, "delta": part, "finish_reason": reason}]}
            for part, reason in parts
            if reason or any(part.values())
        ]
    if response.get("usage"):
        chunks.append({**head, "choices": [], "usage": response["usage"]})
    return b"".join(map(data_event, chunks)) + b"data: [DONE]\n\n"


def content_events(response: Body) -> bytes:
    """Return the chunk of a response of Gemini's API: a stream of one chunk is a whole response."""
    return data_event(response)


def response_events(response: Body) -> bytes:
    """Return the events of a response of OpenAI's Responses API."""
    return b"".join(
        named_event(event["type"], {**event, "sequence_number": number})
        for number, event in enumerate(_response_events(response))
    )


def _response_events(response: Body) -> Iterator[Body]:
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(object_list(response, "output")):
        added = {**item, "status": "in_progress"} | ({"content": []} if item.get("type") == "message" else {})
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        parts = object_list(item, "content") if item.get("type") == "message" else []
        for content_index, part in enumerate(parts):
            place = {"item_id": item.get("id"), "output_index": index, "content_index": content_index}
            key = "refusal" if part.get("type") == "refusal" else "text"
            yield {"type": "response.content_part.added", **place, "part": {**part, key: ""}}
            if isinstance(part.get(key), str):
                yield {"type": f"response.{part.get('type')}.delta", **place, "delta": part[key], "logprobs": []}
                yield {"type": f"response.{part.get('type')}.done", **place, key: part[key], "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": part}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    name = "response.incomplete" if response.get("status") == "incomplete" else "response.completed"
    yield {"type": name, "response": response}
