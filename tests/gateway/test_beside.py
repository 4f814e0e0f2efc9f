"""Features beside the ladder: summaries, detectors, telemetry, operator settings, slow connections."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import rung
from rung.core.domain.failures import Evidence, Kind
from rung.gateway.detector_port import DetectorResult, RequestView, ResponseView
from rung.store.settings import put_setting
from tests.gateway.behind import ASK, WHOLE, WIRES, Behind, ask, messages
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def test_a_summary_where_leaving_out_is_not_enough() -> None:
    """A context that compaction cannot fit is summarised by a model; the latest messages stay unchanged."""
    told: list[Any] = list(ASK)
    for n in range(10):
        told += [
            {"role": "assistant", "content": f"{n} " * 600},
            {"role": "user", "content": f"go on, count to 40 as apple {n}"},
        ]
    rules = [{"fault": "overflow", "window": 1_500, "model": "small"}]
    with Behind(rules, summary_model="cheap") as behind:
        got = ask(behind, "messages", stream=False, messages=told)
        assert got.text == WHOLE
        assert [call.model for call in behind.lab.calls] == ["small", "cheap", "small"]
        last = behind.lab.calls[-1].json["messages"]
        assert "Summary" in last[1]["content"]
        assert last[-1] == told[-1]


class Suspicious:
    """Detector that warns on request 1, nudges on request 2, reports a loop on request 3 and raises on request 4."""

    def __init__(self) -> None:
        self.requests: list[RequestView] = []
        self.responses: list[ResponseView] = []
        self.bad = ""

    def on_request(self, request: RequestView) -> DetectorResult | None:
        self.requests.append(request)
        if len(self.requests) == 4:
            raise RuntimeError("broken")
        loop = Evidence(text="the same call three times", finding=Kind.LOOP_DETECTED, repeats=3)
        return (
            DetectorResult(warning="twice now"),
            DetectorResult(nudge="try another way"),
            DetectorResult(loop),
            None,
        )[len(self.requests) - 1]

    def on_response(self, request: RequestView, response: ResponseView) -> DetectorResult | None:
        self.responses.append(response)
        return DetectorResult(Evidence(text=self.bad, finding=Kind.LOOP_DETECTED)) if self.bad else None


@pytest.mark.parametrize("wire", WIRES)
def test_what_a_detector_finds(wire: str) -> None:
    """A warning becomes a header, a nudge a user turn, evidence a failure; a detector that raises is ignored."""
    detector = Suspicious()
    with Behind(detectors=(detector,)) as behind, behind.http() as client:
        path = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}[wire]
        body = {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK}
        assert client.post(path, json=body).headers["x-rung-warning"] == "twice now"
        assert client.post(path, json=body).status_code == 200
        asked = behind.lab.calls[1].json["input" if wire == "responses" else "messages"]
        assert asked == [*ASK, {"role": "user", "content": "try another way"}]
        got = client.post(path, json=body)
        assert "the same call three times" in got.json()["error"]["message"]
        assert (behind.attempts, got.headers["x-should-retry"]) == (2, "false")
        assert client.post(path, json=body).status_code == 200
        assert any("detector failed" in line for line in behind.log_lines)
        assert {passing.wire for passing in detector.requests} == {wire}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_what_a_detector_finds_in_an_answer(wire: str, stream: bool) -> None:
    """Detectors see text and tool calls, streamed or not; their evidence turns a success into a failure."""
    detector = Suspicious()
    with Behind(detectors=(detector,), turns=[{"tool": "look", "input": {"at": "it"}}]) as behind:
        ask(behind, wire, stream=stream, tools=True)
        assert detector.responses[0].calls == [("look", {"at": "it"})]
        detector.bad = "chanting"
        with pytest.raises((anthropic.APIError, openai.APIError), match="chanting"):
            ask(behind, wire, stream=stream)
        assert behind.attempts == 2


def test_spans() -> None:
    """With telemetry on, each call has a span with failures and decisions, and without prompts or answers."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    with Behind([{"fault": "overloaded", "request": 1}], otel=True) as behind:
        ask(behind, "messages", stream=False)
        ask(behind, "chat", stream=True)
    found = [span for span in spans.get_finished_spans() if span.instrumentation_scope.name == "rung.gateway"]  # type: ignore[union-attr]
    recovered, good = found
    assert recovered.attributes is not None
    assert good.attributes is not None
    assert (recovered.attributes["rung.outcome"], recovered.attributes["rung.attempts"]) == ("recovered", 2)
    assert [event.name for event in recovered.events] == ["rung.attempt_failed", "rung.decided"]
    assert good.attributes["gen_ai.usage.output_tokens"] == 40
    assert "apple" not in recovered.to_json() + good.to_json()


def test_a_person_puts_a_session_on_another_model(tmp_path: Path) -> None:
    """A model that an operator sets for a session applies to its next call."""
    journal = rung.journal(tmp_path / "j.db")
    with Behind(journal=journal) as behind:
        client = behind.claude(default_headers={"x-rung-session": "s"})
        messages(client, stream=False)
        journal.runs.send("model/s", {"model": "large"})
        messages(client, stream=False)
        assert behind.lab.calls[-1].model == "large"


def test_a_policy_set_in_the_service_holds(tmp_path: Path) -> None:
    """A policy change made in the service applies without a restart."""
    journal = rung.journal(tmp_path / "j.db")
    with Behind(journal=journal) as behind:
        messages(behind.claude(), stream=False)
        gateway = behind.served.app.gateway if behind.served.app is not None else None
        assert gateway is not None
        put_setting(journal, "policy", {"backoff": {"base": 0.125}}, "ada")
        wait_until(lambda: gateway.policy("").backoff.base == 0.125)


def test_who_says_nothing_is_let_go() -> None:
    """A connection that sends incomplete headers, or none, is closed at the header timeout."""
    with Behind(limits={"receive": 0.3}) as behind:
        for start in (b"", b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow"):
            with socket.create_connection(("127.0.0.1", behind.served.port)) as slow:
                slow.settimeout(25)  # less than the default header timeout
                slow.sendall(start)
                assert slow.recv(100) == b""
