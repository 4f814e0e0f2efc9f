"""Chat provider whose models fail in sixteen ways; the fault is chosen by the name of the model.

It does not know Rung's resume message: a request that does not end with the beginning of the answer gets the whole answer.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from tests.gateway.scripted import refused, whole
from tests.security.upstream.raw_upstream import RawUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS: Final = tuple(f"word{number}" for number in range(1, 61))
ANSWER: Final = " ".join(WORDS)
OK, NO_PREFILL = "ok", "ok-no-prefill"
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
)
_OVERLOADED: Final = ("503 Service Unavailable", {"message": "The engine is overloaded.", "type": "server_error"})
_RATE_LIMIT: Final = ("429 Too Many Requests", {"message": "Rate limit reached.", "code": "rate_limit_exceeded"})
_REFUSALS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "S02": _RATE_LIMIT,
    "S04": _OVERLOADED,
    "S16": _OVERLOADED,
    "S12": (
        "400 Bad Request",
        {
            "message": "This model's maximum context length is 8192 tokens. However, your messages have 9631 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        },
    ),
    "S13": (
        "400 Bad Request",
        {
            "message": "Your request was rejected as a result of our safety system.",
            "type": "invalid_request_error",
            "code": "content_policy_violation",
        },
    ),
}
_PREFILL: Final = {"message": "This model does not support assistant message prefill.", "code": "invalid_prefill"}


class Timing(NamedTuple):
    """Seconds of the faults."""

    retry_after: float
    silence: float
    first_token: float
    stall: float
    outage: float
    gap: float  # between two words


class Asked(NamedTuple):
    """A request that the provider got."""

    at: float  # seconds since the provider started
    model: str
    status: int


class Provider:
    """The provider, on loopback."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.asked: list[Asked] = []
        self._counts: dict[str, int] = {}
        self._upstream = RawUpstream(self._answer, close=True)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._upstream.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._upstream.__exit__()

    @property
    def url(self) -> str:
        return self._upstream.url

    def of(self, model: str) -> list[Asked]:
        """Return the requests for a model."""
        return [asked for asked in self.asked if asked.model == model]

    def _answer(self, request: bytes) -> Iterator[bytes]:
        body = json.loads(request.partition(b"\r\n\r\n")[2])
        model, at = body["model"], time.monotonic() - self._started
        number = self._counts[model] = self._counts.get(model, 0) + 1
        refusal = self._refusal(body, number, at)
        self.asked.append(Asked(at, model, int(refusal[9:12]) if refusal else 200))
        is_reset = self._upstream.resets = model == "S05" and number == 1
        if refusal:
            return iter([refusal])
        if is_reset:
            return iter([])
        if model == "S06":
            return self._silent()
        return self._stream(body) if body.get("stream") else iter([_completion(model)])

    def _refusal(self, body: dict[str, Any], number: int, at: float) -> bytes:
        model = body["model"]
        if model in _REFUSALS:
            return refused(*_REFUSALS[model])
        if model == "S01" and number == 1:
            return refused(*_RATE_LIMIT, f"retry-after: {self.timing.retry_after:g}")
        if model == "S03" and number == 1:
            return refused("500 Internal Server Error", {"message": "The server had an error.", "type": "server_error"})
        if model == "S15" and at < self.timing.outage:
            return refused(*_OVERLOADED)
        if model == NO_PREFILL and body["messages"][-1]["role"] == "assistant":
            return refused("400 Bad Request", _PREFILL)
        return b""

    def _silent(self) -> Iterator[bytes]:
        time.sleep(self.timing.silence)
        yield b""

    def _stream(self, body: dict[str, Any]) -> Iterator[bytes]:
        model = body["model"]
        yield _HEAD
        if model == "S07":
            time.sleep(self.timing.first_token)
        yield _event(model, {"role": "assistant", "content": ""})
        for number, text in enumerate(_rest(body)):
            if (model in ("S08", "S14") and number == 40) or (model == "S09" and number == 20):
                time.sleep(self.timing.stall if model == "S09" else 0)
                return
            if model == "S10" and number == 10:
                yield _chunk(b'data: {"id": "c1", "choices": [{"delta": {"content": \n\n')
            yield _event(model, {"content": text})
            time.sleep(self.timing.gap)
        yield _event(model, {}, "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": 10, "completion_tokens": 60, "total_tokens": 70}
            yield _chunk(_data({**_base(model), "choices": [], "usage": usage}))
        if model != "S11":
            yield _chunk(b"data: [DONE]\n\n")
        yield b"0\r\n\r\n"


def _rest(body: dict[str, Any]) -> Iterator[str]:
    """Yield the words that follow a prefill; all of them where there is none."""
    last = body["messages"][-1]
    done = (last.get("content") or "").split() if last["role"] == "assistant" else []
    done = done if tuple(done) == WORDS[: len(done)] else []
    for number, word in enumerate(WORDS[len(done) :]):
        yield word if not done and not number else f" {word}"


def _base(model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(model: str, delta: dict[str, Any], reason: str | None = None) -> bytes:
    return _chunk(_data({**_base(model), "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))


def _completion(model: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 60, "total_tokens": 70}
    return whole({**_base(model), "object": "chat.completion", "choices": [choice], "usage": usage})
