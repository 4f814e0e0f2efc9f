"""An upstream that sends scripted bytes, written apart from the lab, and a gateway in front of it."""

from __future__ import annotations

import json
import socketserver
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.gateway.behind import ASK, Behind
from tests.wires.strict import PATHS

if TYPE_CHECKING:
    import socket

WORDS = ["one", " two", " three", " four"]
TEXT = "".join(WORDS)
EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


class Reply(NamedTuple):
    """One reply: a stream (or JSON), and how the transfer ends: complete, left open, or cut."""

    body: bytes
    ending: str = "complete"
    kind: bytes = b"text/event-stream"
    delay: float = 0.0
    status: int = 200

    def send(self, connection: socket.socket, stopped: threading.Event) -> bool:
        """Send the reply; return whether the connection stays usable."""
        stopped.wait(self.delay)
        kind = b"content-type: " + self.kind + b"\r\n" if self.kind else b""
        connection.sendall(b"HTTP/1.1 %d OK\r\n%btransfer-encoding: chunked\r\n\r\n" % (self.status, kind))
        if self.body:
            connection.sendall(b"%x\r\n%b\r\n" % (len(self.body), self.body))
        if self.ending == "complete":
            connection.sendall(b"0\r\n\r\n")
            return True
        if self.ending == "open":
            stopped.wait(60)
        return False


class Upstream:
    """Replies to the n-th request with the n-th reply; the last one repeats."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.requests: list[Any] = []
        self.connections = 0
        self._stopped = threading.Event()
        upstream = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(ConnectionError):
                    self._serve()

            def _serve(self) -> None:
                upstream.connections += 1
                while head := self._head():
                    length = next(int(line[15:]) for line in head if line.lower().startswith(b"content-length:"))
                    upstream.requests.append(json.loads(self.rfile.read(length)))
                    reply = upstream.replies[min(len(upstream.requests), len(upstream.replies)) - 1]
                    if not reply.send(self.connection, upstream._stopped):
                        return

            def _head(self) -> list[bytes]:
                lines = []
                while (line := self.rfile.readline().rstrip()) != b"":
                    lines.append(line)
                return lines

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def use(self, *replies: Reply) -> None:
        """Begin again with these replies."""
        self.replies, self.requests, self.connections = replies, [], 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()


class Rig(Behind):
    """A gateway whose upstreams are scripted."""

    def __init__(self, *replies: Reply, **settings: Any) -> None:
        self.upstream = Upstream(*replies)
        super().__init__(anthropic=self.upstream.url, openai=self.upstream.url, **settings)

    def __enter__(self) -> Self:
        self.upstream.__enter__()
        super().__enter__()
        self._http = self.http()
        return self

    def __exit__(self, *_: object) -> None:
        self.upstream.__exit__()
        super().__exit__()

    def stream(self, wire: str, **more: Any) -> str:
        """Ask for a stream with plain HTTP; return its text."""
        body = {"model": "small", "max_tokens": 4_000, "messages": ASK, "input": ASK, "stream": True, **more}
        return self._http.post(PATHS[wire], json=body).text

    @property
    def asked(self) -> int:
        """Number of requests that the upstream got."""
        return len(self.upstream.requests)


def event(kind: str, **data: Any) -> tuple[str, Any]:
    return kind, {"type": kind, **data}


def messages(*blocks: dict[str, Any], stop: str = "end_turn", inputs: int = 1_000) -> list[tuple[str, Any]]:
    """A stream of Anthropic's API with these blocks; text and thinking come in pieces."""
    usage = {"input_tokens": inputs, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events = [event("message_start", message={**head, "stop_reason": None, "stop_sequence": None})]
    for index, block in enumerate(blocks):
        kind = block["type"]
        events.append(event("content_block_start", index=index, content_block={**block, **EMPTY[kind]}))
        deltas: list[dict[str, Any]] = []
        if kind == "text":
            deltas = [{"type": "text_delta", "text": word} for word in WORDS if word in block["text"]]
        if kind == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if kind == "tool_use":
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(event("content_block_stop", index=index))
    end = {"stop_reason": stop, "stop_sequence": None}
    events.append(event("message_delta", delta=end, usage={"output_tokens": 40}))
    return [*events, event("message_stop")]


def chunk(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> tuple[str, Any]:
    choice = {"delta": delta, "index": index, "finish_reason": finish}  # the index last, as some services write it
    return "", {"id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def chat(*deltas: dict[str, Any], stop: str = "stop", inputs: int = 1_000) -> list[tuple[str, Any]]:
    """A stream of OpenAI's Chat Completions API with these deltas."""
    usage = {"prompt_tokens": inputs, "completion_tokens": 40, "total_tokens": inputs + 40}
    end = {**chunk({})[1], "choices": [], "usage": usage}
    return [*(chunk(delta) for delta in deltas), chunk({}, stop), ("", end), ("", "[DONE]")]


def responses(*items: dict[str, Any], status: str = "completed", inputs: int = 1_000) -> list[tuple[str, Any]]:
    """A stream of OpenAI's Responses API with these items; text comes in pieces."""
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    events = [event("response.created", response=head)]
    for index, item in enumerate(items):
        begun = {**item, "status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
        events.append(event("response.output_item.added", output_index=index, item=begun))
        for part in item["content"] if item["type"] == "message" else ():
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            events.append(event("response.content_part.added", **place, part={**part, "text": ""}))
            for word in WORDS:
                if word in part["text"]:
                    events.append(event("response.output_text.delta", **place, delta=word, logprobs=[]))
            events.append(event("response.output_text.done", **place, text=part["text"], logprobs=[]))
            events.append(event("response.content_part.done", **place, part=part))
        events.append(event("response.output_item.done", output_index=index, item=item))
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": inputs, "output_tokens": 40, "total_tokens": inputs + 40, **details}
    why = {"incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None}
    whole = {**head, "status": status, "output": list(items), "usage": usage, **why}
    events.append(event(f"response.{status}", response=whole))
    return [(name, {**data, "sequence_number": number}) for number, (name, data) in enumerate(events)]


def text_block(text: str = TEXT) -> dict[str, Any]:
    return {"type": "text", "text": text}


def text_item(text: str = TEXT) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def answer(wire: str, **more: Any) -> list[tuple[str, Any]]:
    """A stream that says `TEXT`."""
    if wire == "messages":
        return messages(text_block(), **more)
    if wire == "chat":
        return chat({"role": "assistant", "content": ""}, *({"content": word} for word in WORDS), **more)
    return responses(text_item(), **more)


def written(events: list[tuple[str, Any]]) -> bytes:
    """Server-sent events in their usual form."""
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(lines).encode()


def until(events: list[tuple[str, Any]], word: str) -> list[tuple[str, Any]]:
    """The events up to the one with this text."""
    at = next(at for at, (_, data) in enumerate(events) if word in json.dumps(data))
    return events[: at + 1]
