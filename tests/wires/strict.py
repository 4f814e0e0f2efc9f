"""Reading answers as strictly as their wires are written down: what an SDK forgives is told here."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.behind import Got

GEMINI_PATHS = {
    False: "/v1beta/models/small:generateContent",
    True: "/v1beta/models/small:streamGenerateContent?alt=sse",
}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


class Malformed(Exception):
    """An answer that its wire does not allow."""


class ErrorEvent(Exception):
    """A stream that said it failed, and then nothing."""


def need(true: object, words: str) -> None:
    if not true:
        raise Malformed(words)


def error_of(wire: str, status: int, body: bytes) -> None:
    """An error answer has the shape that the wire's SDKs parse."""
    need(status >= 400, f"status {status}")
    try:
        found = json.loads(body)
    except ValueError:
        raise Malformed(f"{status} with a body that is no JSON") from None
    error = found.get("error") if isinstance(found, dict) else None
    need(isinstance(error, dict) and isinstance(error.get("message"), str), f"{status} without error.message")
    need(wire != "messages" or found.get("type") == "error", f"{status} without type error")


def events_of(text: str) -> list[tuple[str, str]]:
    """The events of a stream, by name and data; comments are left out."""
    need(text.endswith("\n\n") or not text, "the stream breaks off inside an event")
    found = []
    for block in text.split("\n\n"):
        lines = block.split("\n")
        name = next((line[7:] for line in lines if line.startswith("event: ")), "")
        data = "\n".join(line[6:] for line in lines if line.startswith("data: "))
        if name or data:
            found.append((name, data))
    return found


def streamed(wire: str, text: str) -> Got:
    """What a stream says, if it says it as it must."""
    if wire == "gemini":
        return _gemini(text)
    events = events_of(text)
    parsed: list[tuple[str, Any]] = []
    for name, data in events:
        try:
            found = data if data == "[DONE]" else json.loads(data)
        except ValueError:
            raise Malformed(f"the event {name or 'without a name'} is no JSON") from None
        parsed.append((name or (found.get("type", "") if isinstance(found, dict) else ""), found))
    return {"messages": _messages, "chat": _chat, "responses": _responses}[wire](parsed)


def whole(wire: str, body: Any) -> Got:
    """What an answer says that came at once."""
    if wire == "messages":
        need(body.get("type") == "message" and isinstance(body.get("usage"), dict), "no whole message")
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        calls = [str(block["input"]) for block in body["content"] if block["type"] == "tool_use"]
        return Got(text, body["stop_reason"], calls, body["usage"]["output_tokens"])
    if wire == "chat":
        (choice,) = body["choices"]
        calls = [call["function"]["arguments"] for call in choice["message"].get("tool_calls") or ()]
        content = "".join(choice["message"].get(name) or "" for name in ("content", "refusal"))
        return Got(content, choice["finish_reason"], calls, body["usage"]["completion_tokens"])
    if wire == "gemini":
        return _of_contents([body])
    return _of_response(body)


def _gemini(text: str) -> Got:
    """Chunks of one response: each has the same id, the last the finish reason. An error is a line of JSON without `data:`."""
    text = text.replace("\r\n", "\n")  # both are allowed
    blocks = [block for block in text.split("\n\n") if block]
    if blocks and not blocks[-1].startswith("data: "):
        raise ErrorEvent(json.loads(blocks[-1])["error"]["message"])
    chunks = [json.loads(data) for _, data in events_of(text)]
    need(len(chunks) == len(blocks), "something that is no chunk")
    need(len({chunk.get("responseId") for chunk in chunks}) == 1, "several ids in one response")
    reasons = [each.get("finishReason") for chunk in chunks for each in chunk.get("candidates", ())]
    need(not any(reasons[:-1]), "chunks after a finishReason")
    return _of_contents(chunks)


def _of_contents(chunks: list[Any]) -> Got:
    candidates = [each for chunk in chunks for each in chunk.get("candidates", ())]
    parts = [part for each in candidates for part in each.get("content", {}).get("parts", ())]
    blocked = any(chunk.get("promptFeedback", {}).get("blockReason") for chunk in chunks)
    reason = candidates[-1].get("finishReason", "") if candidates else "content_filter" * blocked
    need(reason, "no finishReason")
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    calls = [json.dumps(part["functionCall"].get("args", {})) for part in parts if "functionCall" in part]
    return Got(text, reason.lower(), calls, chunks[-1]["usageMetadata"].get("candidatesTokenCount", 0))


def _messages(events: list[tuple[str, Any]]) -> Got:
    text, calls, stop, usage = "", [], "", 0
    opened, following, kinds = -1, 0, ""
    written = ""
    begun = ended = False
    for name, data in events:
        need(not ended, f"{name} after message_stop")
        need(data.get("type") == name, f"{name} says it is {data.get('type')}")
        if name == "error":
            need((name, data) == events[-1], "something after an error")
            raise ErrorEvent(data["error"]["message"])
        if name == "ping":
            continue
        need(begun or name == "message_start", f"{name} before message_start")
        if name == "message_start":
            need(not begun, "a second message_start")
            begun = True
        elif name == "content_block_start":
            need(opened < 0 and data["index"] == following, f"block {data['index']} begins, {following} is next")
            opened, following, kinds, written = following, following + 1, data["content_block"]["type"], ""
        elif name == "content_block_delta":
            need(data["index"] == opened, f"a piece of block {data['index']}, {opened} is open")
            text += data["delta"].get("text", "")
            written += data["delta"].get("partial_json", "")
        elif name == "content_block_stop":
            need(data["index"] == opened, f"block {data['index']} ends, {opened} is open")
            opened = -1
            if kinds == "tool_use":
                calls.append(str(json.loads(written or "{}")))
        elif name == "message_delta":
            need(opened < 0, "message_delta in an open block")
            stop, usage = data["delta"]["stop_reason"], data["usage"]["output_tokens"]
        elif name == "message_stop":
            need(stop, "message_stop without a stop_reason")
            ended = True
    need(ended, "no message_stop")
    return Got(text, stop, calls, usage)


def _chat(events: list[tuple[str, Any]]) -> Got:
    text, stop, usage = "", "", 0
    calls: dict[int, str] = {}
    names: set[str] = set()
    for at, (_, data) in enumerate(events):
        if data == "[DONE]":
            need(at == len(events) - 1, "something after [DONE]")
            continue
        if "error" in data:
            need(at == len(events) - 1, "something after an error")
            raise ErrorEvent(data["error"]["message"])
        names.add(data["id"])
        for choice in data["choices"]:
            delta = choice.get("delta") or {}
            need(not stop or not (delta.get("content") or delta.get("tool_calls")), "content after a finish_reason")
            text += delta.get("content") or delta.get("refusal") or ""
            for call in delta.get("tool_calls") or ():
                calls[call["index"]] = calls.get(call["index"], "") + (call["function"].get("arguments") or "")
            stop = choice.get("finish_reason") or stop
        usage = (data.get("usage") or {}).get("completion_tokens", usage)
    need(len(names) == 1, f"{len(names)} ids in one completion")
    need(stop, "no finish_reason")
    need(events[-1][1] == "[DONE]", "no [DONE]")
    return Got(text, stop, list(calls.values()), usage)


def _responses(events: list[tuple[str, Any]]) -> Got:
    number, text, opened, following = -1, "", -1, 0
    final: Any = None
    for name, data in events:
        need(final is None, f"{name} after the end")
        if name == "error":
            raise ErrorEvent((data.get("error") or data)["message"])
        need(data["type"] == name, f"{name} says it is {data['type']}")
        need(data["sequence_number"] > number, f"sequence number {data['sequence_number']} after {number}")
        number = data["sequence_number"]
        need(number == 0 or name != "response.created", "created twice")
        if name == "response.output_item.added":
            need(opened < 0 and data["output_index"] == following, f"item {data['output_index']}, {following} is next")
            opened, following = following, following + 1
        elif name == "response.output_item.done":
            need(data["output_index"] == opened, f"item {data['output_index']} is done, {opened} is open")
            opened = -1
        elif name in ("response.output_text.delta", "response.refusal.delta"):
            need(data["output_index"] == opened, f"text of item {data['output_index']}, {opened} is open")
            text += data["delta"]
        elif name in ("response.completed", "response.incomplete"):
            need(opened < 0, "the end in an open item")
            final = data["response"]
        elif name == "response.failed":
            raise ErrorEvent(data["response"]["error"]["message"])
    need(final is not None, "no response.completed")
    got = _of_response(final)
    need(got.text == text, "the whole response says something else than its pieces")
    need(len(final["output"]) == following, f"{len(final['output'])} items at the end, {following} were added")
    return got


def _of_response(body: Any) -> Got:
    said = [
        str(part.get("text") or part.get("refusal"))
        for item in body["output"]
        if item["type"] == "message"
        for part in item["content"]
    ]
    calls = [item["arguments"] for item in body["output"] if item["type"] == "function_call"]
    return Got("".join(said), body["status"], calls, body["usage"]["output_tokens"])
