"""Test rig: a gateway in front of an upstream that sends written answers, one for each request; the last one repeats."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Scripted(Front):
    """A gateway, and the upstream that it asks."""

    upstream: RawUpstream

    def bodies(self) -> list[dict[str, Any]]:
        """The bodies that the upstream got."""
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.upstream.requests]

    @property
    def asked(self) -> int:
        return len(self.upstream.requests)


@contextmanager
def scripted(*answers: bytes, **settings: Any) -> Iterator[Scripted]:
    """Run a gateway whose upstream sends these answers."""
    left = list(answers)
    with (
        RawUpstream(lambda _: left.pop(0) if len(left) > 1 else left[0], close=True) as upstream,
        Scripted(anthropic=upstream.url, openai=upstream.url, gemini=upstream.url, **settings) as front,
    ):
        front.upstream = upstream
        yield front


def whole(body: dict[str, Any]) -> bytes:
    """A response that is not streamed."""
    return http_answer(json.dumps(body).encode(), "content-type: application/json")


def refused(status: str, error: dict[str, Any], *headers: str) -> bytes:
    """An error response."""
    return http_answer(json.dumps({"error": error}).encode(), "content-type: application/json", *headers, status=status)


def stream(*events: dict[str, Any] | str, cut: bool = False) -> bytes:
    """A stream of these events; `cut`: it breaks off after them."""
    body = b""
    for event in events:
        name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
        body += f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
    length = len(body) + 1_000 * cut
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
    return head.encode() + body


def completion(text: str | None, reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion."""
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "finish_reason": reason}
    return {**CHUNK, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def chunk(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def chat_stream(*texts: str, reason: str = "stop", cut: bool = False) -> bytes:
    """A streamed chat completion; `cut`: it breaks off before its end."""
    chunks = [chunk(content=text) for text in texts]
    if cut:
        return stream(*chunks, cut=True)
    return stream(*chunks, chunk(reason), {**CHUNK, "choices": [], "usage": USAGE}, "[DONE]")


def message(*content: dict[str, Any], reason: str = "end_turn") -> dict[str, Any]:
    """A message of Anthropic's Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    said = {"id": "m1", "type": "message", "role": "assistant", "model": "small", "content": list(content)}
    return {**said, "stop_reason": reason, "stop_sequence": None, "usage": usage}


GEMINI_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def content(*parts: dict[str, Any], reason: str = "", response_id: str = "r1", **more: Any) -> dict[str, Any]:
    """A response of Gemini's API, or a chunk of one."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {
        "candidates": [candidate], "usageMetadata": GEMINI_USAGE, "modelVersion": "small", "responseId": response_id, **more,
    }  # fmt: skip


def text_part(text: str, **more: Any) -> dict[str, Any]:
    """A part with text."""
    return {"text": text, **more}


def call_part(name: str = "look", **arguments: Any) -> dict[str, Any]:
    """A part with a function call."""
    return {"functionCall": {"name": name, "args": arguments}}
