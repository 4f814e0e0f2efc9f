"""The gateway runs on any HTTP client that implements the upstream port."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.core.policy.parser import parse_policy_file
from rung.gateway.gateway import Gateway
from rung.gateway.inbound_request import InboundRequest
from rung.gateway.recovery import handle
from rung.gateway.settings import GatewaySettings, settings_from
from rung.gateway.spending.paid_attempts import CallSpending
from rung.wires.registry import MESSAGES

if TYPE_CHECKING:
    from rung.gateway.upstream.settings import UpstreamSettings

BODY = {"model": "small", "max_tokens": 1_000, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


class Received:
    """A response with exactly the members of the port."""

    def __init__(self, status: int, body: bytes, pieces: int) -> None:
        self.status = status
        self.raw_headers = [(b"content-type", b"application/json")]
        size = -(-len(body) // pieces)
        self._left = [body[at : at + size] for at in range(0, len(body), size)]
        self.closed = 0

    @property
    def ended(self) -> bool:
        return not self._left

    async def read_chunk(self) -> bytes:
        await asyncio.sleep(0)
        return self._left.pop(0) if self._left else b""

    def close(self) -> None:
        self.closed += 1


class Client:
    """A client that answers each request with the next scripted response."""

    def __init__(self, *answers: tuple[int, Any] | Exception, pieces: int = 1) -> None:
        self._answers = list(answers)
        self._pieces = pieces
        self.sent: list[tuple[str, str, bytes]] = []
        self.given: list[Received] = []

    async def send(
        self, upstream: UpstreamSettings, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Received:
        assert headers
        self.sent.append((upstream.name, f"{method} {target}", body))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.given.append(Received(answer[0], json.dumps(answer[1]).encode(), self._pieces))
        return self.given[-1]

    def reload(self, settings: GatewaySettings) -> None:
        assert settings.upstreams

    async def close(self) -> None:
        self._answers.clear()


def ask(client: Client, **policy: Any) -> tuple[Gateway, list[dict[str, Any]]]:
    """Send one request through a gateway on this client; return the gateway and the ASGI messages."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def inside() -> Gateway:
        book = parse_policy_file({"policy": {"backoff": {"base": 0.0}, **policy}})
        gateway = Gateway(settings_from({"anthropic": "http://here"}, book), client=client)
        call = InboundRequest(
            wire=MESSAGES,
            upstream=gateway.settings.of_wire("anthropic")[0],
            target="/v1/messages",
            raw_headers=[(b"x-api-key", b"k")],
            headers={b"x-api-key": b"k"},
            upstream_headers=[(b"x-api-key", b"k")],
            body=json.dumps(BODY).encode(),
            model="small",
        )
        await handle(gateway, gateway.new_proxied_call(call, send, CallSpending()))
        await gateway.close()
        return gateway

    return asyncio.run(inside()), sent


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_answer_in_any_number_of_pieces(pieces: int) -> None:
    """A complete response is passed on unchanged, and the upstream response is closed."""
    client = Client((200, ANSWER), pieces=pieces)
    gateway, (start, body) = ask(client)
    assert (start["status"], json.loads(body["body"])) == (200, ANSWER)
    assert client.sent == [("anthropic", "POST /v1/messages", json.dumps(BODY).encode())]
    assert [response.closed for response in client.given] == [1]
    assert gateway.metrics.counts["rung_requests_total", 'wire="messages",outcome="succeeded"'] == 1
    assert gateway.metrics.counts["rung_tokens_total", 'direction="out"'] == 5


@pytest.mark.parametrize(
    "failure",
    [(529, OVERLOADED), ConnectionResetError("reset"), AttemptError("late", finding=Kind.TIMEOUT)],
    ids=["status", "OSError", "AttemptError"],
)
def test_a_failure_is_recovered_by_the_engine(failure: Any) -> None:
    """An error status or exception is a failure of the first attempt; headers report the recovery."""
    gateway, (start, body) = ask(Client(failure, (200, ANSWER)))
    headers = dict(start["headers"])
    assert json.loads(body["body"]) == ANSWER
    assert (headers[b"x-rung-attempts"], headers[b"x-rung-path"]) == (b"2", b"retry")
    assert headers[b"x-rung-outcome"] == b"recovered"
    assert headers[b"x-rung-incident"]
    assert gateway.metrics.counts["rung_attempts_total", ""] == 2
    assert gateway.metrics.counts["rung_rungs_total", 'rung="retry"'] == 1


def test_a_fallback_has_a_breaker_of_its_own() -> None:
    """Each attempt uses the circuit of its own upstream and model."""
    missing = {"type": "error", "error": {"type": "not_found_error", "message": "model: small"}}
    client = Client((404, missing), (200, ANSWER))
    gateway, (start, _) = ask(client, models=["small", "large"])
    assert dict(start["headers"])[b"x-rung-model"] == b"large"
    assert json.loads(client.sent[1][2])["model"] == "large"
    assert {key for key, _ in gateway.breakers.items()} == {"anthropic/small/", "anthropic/large/"}


def test_a_blocked_call_leaves_no_report(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a fallback needs approval, the client gets the error, and no report is written."""
    monkeypatch.chdir(tmp_path)
    missing = {"type": "error", "error": {"type": "not_found_error", "message": "model: small"}}
    gateway, (start, _) = ask(Client((404, missing)), models=["small", "large"], confirm="always")
    assert start["status"] == 404
    assert gateway.metrics.counts["rung_requests_total", 'wire="messages",outcome="blocked"'] == 1
    assert not list(tmp_path.iterdir())
