"""What is done beside the ladder: summaries, detectors, telemetry, a person's word, connections that say nothing."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import rung
from rung.core.failures import Evidence, Kind
from rung.gateway.protocol import Protocol
from rung.store.settings import put_setting
from tests.gateway.behind import ASK, WHOLE, Behind, ask, messages

if TYPE_CHECKING:
    from pathlib import Path


def test_a_summary_where_leaving_out_is_not_enough() -> None:
    """What cheap compaction cannot make fit is summarised by a model, and what was said last stays as it was."""
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
    """Finds a loop in the second request, and breaks on the third."""

    def __init__(self) -> None:
        self.asked_for: list[str] = []

    def asked(self, session: str, body: dict[str, Any]) -> Evidence | None:
        self.asked_for.append(session)
        if len(self.asked_for) == 3:
            raise RuntimeError("broken")
        found = Evidence(text="the same call three times", finding=Kind.LOOP_DETECTED, repeats=3)
        return found if len(self.asked_for) == 2 else None

    def answered(self, session: str, answer: dict[str, Any]) -> Evidence | None:
        return None


def test_what_a_detector_finds_is_a_failure() -> None:
    """A finding about a request goes the way of any failure; a detector that breaks is told of and passed over."""
    with Behind() as behind:
        behind.gateway.detectors = (Suspicious(),)
        assert ask(behind, "messages", stream=False).text == WHOLE
        with pytest.raises(anthropic.APIStatusError, match="the same call three times"):
            ask(behind, "messages", stream=False)
        assert behind.attempts == 1
        assert ask(behind, "messages", stream=False).text == WHOLE
        assert any("a detector broke" in words for words in behind.words)


def test_spans() -> None:
    """With telemetry on there is a span per call, with what failed and what was decided, and nothing that was said."""
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
    """What somebody says about a session, from the service, holds for its next call."""
    journal = rung.journal(tmp_path / "j.db")
    with Behind(journal=journal) as behind:
        client = behind.claude(default_headers={"x-rung-session": "s"})
        messages(client, stream=False)
        journal.runs.send("model/s", {"model": "large"})
        ends = time.monotonic() + 10
        while behind.lab.calls[-1].model != "large" and time.monotonic() < ends:
            time.sleep(0.2)
            messages(client, stream=False)
        assert behind.lab.calls[-1].model == "large"


def test_a_policy_set_in_the_service_holds(tmp_path: Path) -> None:
    """What a person has set over the file is in force a moment later, without a restart."""
    journal = rung.journal(tmp_path / "j.db")
    with Behind(journal=journal) as behind:
        messages(behind.claude(), stream=False)
        gateway = behind.served.app.gateway if behind.served.app is not None else None
        assert gateway is not None
        put_setting(journal, "policy", {"backoff": {"base": 0.125}}, "ada")
        ends = time.monotonic() + 10
        while gateway.policy("").backoff.base != 0.125 and time.monotonic() < ends:
            time.sleep(0.1)
        assert gateway.policy("").backoff.base == 0.125


def test_who_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that sends half of its headers, or none, is closed when its time is up."""
    monkeypatch.setattr(Protocol, "seconds", 0.3)
    with Behind() as behind:
        for start in (b"", b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-slow"):
            with socket.create_connection(("127.0.0.1", behind.served.port)) as slow:
                slow.settimeout(5)
                slow.sendall(start)
                assert slow.recv(100) == b""
