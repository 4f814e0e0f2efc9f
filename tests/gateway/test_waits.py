"""Waiting for an upstream that fails: as long as the client waits, with probes that all waiting calls share."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from rung.gateway.client_timeout import answer_within, client_timeout, headers_within
from rung.gateway.gateway import BREAKER_SETTINGS
from rung.testing.provider import Lab
from tests.gateway.behind import ASK, WHOLE, WIRES, Behind, ask, messages
from tests.gateway.scripted import refused, scripted
from tests.waiting import wait_until
from tests.wires.strict import PATHS

PATIENT: dict[str, Any] = {"patience": 120, "retries": 1}


def patient(rules: Any, policy: Any = None, **settings: Any) -> Behind:
    """Return a gateway that waits for a failing upstream, with probes that are quick enough for tests."""
    return Quick(rules, policy={**PATIENT, **(policy or {})}, **settings)


class Quick(Behind):
    """Rig whose circuits are probed several times a second."""

    def __enter__(self) -> Quick:
        super().__enter__()
        self.gateway.breakers.settings = replace(BREAKER_SETTINGS, pause=0.2, max_pause=0.5)
        return self


def body_of(wire: str, *, stream: bool = False) -> dict[str, Any]:
    return {"model": "small", "max_tokens": 500, "messages": ASK, "input": ASK[0]["content"], "stream": stream} | (
        {} if wire != "responses" else {"messages": None}
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_an_outage_is_outlasted(wire: str, stream: bool) -> None:
    """A call whose upstream is overloaded for longer than its retries waits, and gets its answer after the outage."""
    with patient([{"fault": "overloaded", "lasts": 2.0}]) as behind:
        assert ask(behind, wire, stream=stream).text == WHOLE
        assert behind.attempts <= 12


def test_waiting_calls_share_probes() -> None:
    """In an outage no call is refused, the upstream gets few more requests than there are calls, and all are served."""
    calls = 60
    with patient([{"fault": "overloaded"}]) as behind, ThreadPoolExecutor(calls) as threads:
        asked = [threads.submit(ask, behind, "messages", stream=number % 2 == 0) for number in range(calls)]
        wait_until(lambda: behind.gateway.circuit_waits.waiting > 0.8 * calls, pause=0.05)
        assert not any(call.done() for call in asked)
        during = behind.attempts
        behind.lab.use()
        assert {call.result().text for call in asked} == {WHOLE}
        assert during <= 2.2 * calls  # each call's own retry, and some probes
        assert behind.gateway.circuit_waits.waiting == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_end_of_patience_hands_the_decision_back(wire: str, stream: bool) -> None:
    """Before its client leaves, a call ends with the provider's status and error, when to come again, and no word against it."""
    with patient([{"fault": "overloaded"}]) as behind, behind.http() as client:
        got = client.post(PATHS[wire], json=body_of(wire, stream=stream), headers={"x-stainless-timeout": "2"})
        assert got.status_code == behind.lab.calls[-1].status
        assert "verloaded" in got.text
        assert int(got.headers["retry-after"]) >= 1
        assert "x-should-retry" not in got.headers
        assert got.headers["x-rung-path"].endswith("wait,surface")


def test_a_call_without_an_attempt_gets_the_providers_error() -> None:
    """A call that found the circuit open all the time ends with the error that the provider gave to other calls."""
    with patient([{"fault": "overloaded"}]) as behind, behind.http() as client:
        behind.gateway.breakers.settings = replace(BREAKER_SETTINGS, pause=30.0)
        first = client.post("/v1/messages", json=body_of("messages"), headers={"x-stainless-timeout": "2"})
        attempts = behind.attempts
        second = client.post("/v1/messages", json=body_of("messages"), headers={"x-stainless-timeout": "2"})
        assert behind.attempts == attempts
        assert (second.status_code, second.json()) == (first.status_code, first.json())
        assert 1 <= int(second.headers["retry-after"]) <= 31
        assert "x-should-retry" not in second.headers


def test_a_dead_provider_is_not_reported_with_an_old_error() -> None:
    """After errors with a response, a provider that closes every connection has no error to report: the client is told so."""
    with patient([{"fault": "overloaded", "times": 2}, {"fault": "reset"}]) as behind, behind.http() as client:
        behind.gateway.breakers.settings = replace(BREAKER_SETTINGS, pause=30.0)
        short = {"x-stainless-timeout": "2"}
        client.post("/v1/messages", json=body_of("messages"), headers=short)
        behind.gateway.breakers.settings = replace(BREAKER_SETTINGS, pause=0.2, max_pause=0.5)
        wait_until(
            lambda: _text(client, short).startswith("service_down: the upstream is failing; it is tried again in")
        )


def _text(client: Any, headers: dict[str, str]) -> str:
    text: str = client.post("/v1/messages", json=body_of("messages"), headers=headers).json()["error"]["message"]
    return text


def test_a_fallback_that_is_back_first_serves_those_who_wait() -> None:
    """When the other model is back before the own one, all calls that wait for the own one use it."""
    rules = [{"fault": "overloaded", "model": "small"}, {"fault": "overloaded", "model": "large"}]
    calls = 20
    with (
        patient(rules, policy={"models": ["small", "large"]}) as behind,
        ThreadPoolExecutor(calls) as threads,
    ):
        asked = [threads.submit(ask, behind, "messages", stream=False) for _ in range(calls)]
        wait_until(lambda: behind.gateway.circuit_waits.waiting > 0.8 * calls, pause=0.05)
        behind.lab.use([{"fault": "overloaded", "model": "small"}])
        assert {call.result().text for call in asked} == {WHOLE}


def test_no_patience() -> None:
    """With a patience of 0 a call ends when its retries are used."""
    with patient([{"fault": "overloaded"}], policy={"patience": 0}) as behind, behind.http() as client:
        got = client.post("/v1/messages", json=body_of("messages"))
        assert (got.status_code, behind.attempts) == (529, 2)
        assert "wait" not in got.headers["x-rung-path"]


def test_refused_at_the_concurrency_limit_only() -> None:
    """A call that finds no room is told to come again after the next probe."""
    with patient([{"fault": "overloaded"}], limits={"concurrency": 1}) as behind, ThreadPoolExecutor(1) as threads:
        behind.gateway.breakers.settings = replace(BREAKER_SETTINGS, pause=20.0, max_pause=None)
        waiting = threads.submit(ask, behind, "messages", stream=False)
        wait_until(lambda: behind.gateway.circuit_waits.waiting == 1, pause=0.05)
        with behind.http() as client:
            got = client.post("/v1/messages", json=body_of("messages"))
        assert got.status_code == 529
        assert int(got.headers["retry-after"]) >= 1
        behind.lab.use()
        for _, breaker in behind.gateway.breakers.items():
            breaker.reopens_at = 0.0
        assert waiting.result().text == WHOLE


def test_headers_are_held_while_a_call_waits() -> None:
    """A stream that waits has no status yet; with `header_hold_seconds` pings begin, and the answer follows them."""
    with patient([{"fault": "overloaded", "lasts": 1.5}], header_hold_seconds=0.3) as behind, behind.http() as client:
        text = client.post("/v1/messages", json=body_of("messages", stream=True)).text
        assert text.startswith("event: ping")
        assert "message_stop" in text


TIMEOUTS = [
    ({}, 285.0),
    ({b"x-stainless-timeout": b"600"}, 600.0),
    ({b"x-stainless-timeout": b"30.5"}, 30.5),
    ({b"x-stainless-timeout": b"600", b"x-stainless-read-timeout": b"60"}, 60.0),
    ({b"x-stainless-timeout": b"600", b"x-stainless-lang": b"js"}, 300.0),
    ({b"x-stainless-timeout": b"60", b"x-stainless-lang": b"js"}, 60.0),
    ({b"x-server-timeout": b"120"}, 120.0),
    ({b"x-stainless-timeout": b"NaN"}, 285.0),
    ({b"x-stainless-timeout": b"-1"}, 285.0),
    ({b"x-stainless-timeout": b"inf"}, 285.0),
    ({b"x-stainless-timeout": b"not given"}, 285.0),
    ({b"x-stainless-timeout": b"9" * 400}, 285.0),
]


@pytest.mark.parametrize(("headers", "seconds"), TIMEOUTS)
def test_how_long_a_client_waits(headers: dict[bytes, bytes], seconds: float) -> None:
    """The timeout that a client names is used; fetch of Node waits 300 s for headers at most; nonsense is ignored."""
    assert client_timeout(headers, 285.0) == seconds
    assert 0.8 * seconds <= answer_within(headers, 285.0) < seconds


@pytest.mark.parametrize(("headers", "seconds"), TIMEOUTS)
def test_an_error_at_the_end_of_patience_has_a_status(headers: dict[bytes, bytes], seconds: float) -> None:
    """The headers of a stream are held for some time after the end of patience, and sent before the client leaves."""
    room = seconds - answer_within(headers, 285.0)
    assert answer_within(headers, 285.0) + room / 2 < headers_within(headers, 285.0) < seconds


def test_the_body_of_an_error_is_the_providers() -> None:
    """The error at the end of the patience is passed on byte for byte."""
    error = {"type": "overloaded_error", "message": "Overloaded", "detail": {"b": 1, "a": [2]}}
    policy = {"patience": 600, "retries": 1}
    with scripted(refused("529 Overloaded", error), policy=policy) as front, front.http() as client:
        got = client.post("/v1/messages", json=body_of("messages"), headers={"x-stainless-timeout": "1"})
        assert got.headers["x-rung-path"].endswith("wait,surface")
        assert (got.status_code, got.content) == (529, json.dumps({"error": error}).encode())


@pytest.mark.parametrize("wire", WIRES)
def test_a_broken_stream_waits_as_well(wire: str) -> None:
    """A stream that breaks when an outage begins is resumed after it: the client gets one whole answer."""
    rules = [{"fault": "cut", "after": 7, "request": 1}, {"fault": "overloaded", "lasts": 2.0}]
    with patient(rules) as behind:
        assert ask(behind, wire, stream=True).text == WHOLE
        assert behind.attempts >= 4


@pytest.mark.parametrize("wire", WIRES)
def test_resumptions_that_make_progress_are_not_counted(wire: str) -> None:
    """A stream that breaks again and again, each time further on, is resumed more often than a call is retried."""
    rules = [{"fault": "cut", "after": 6, "request": "1-5"}]
    with patient(rules, policy={"patience": 0}) as behind:
        assert ask(behind, wire, stream=True).text == WHOLE
        assert behind.attempts > 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_plan_limit_is_passed_on_at_once(stream: bool) -> None:
    """A limit that reopens in hours is not waited for: one request, the provider's status, error and headers."""
    reset = str(int(time.time()) + 5 * 3_600)
    limits = {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": reset}
    error = {"type": "rate_limit_error", "message": "This request would exceed your account's rate limit."}
    answer = refused("429 Too Many Requests", error, *(f"{name}: {value}" for name, value in limits.items()))
    with scripted(answer, policy={"patience": 600}) as front, front.http() as client:
        got = client.post("/v1/messages", json=body_of("messages", stream=stream))
        assert (front.asked, got.status_code, got.json()["error"]) == (1, 429, error)
        assert limits.items() <= dict(got.headers).items()


def test_a_plan_limit_is_taken_by_another_upstream() -> None:
    """An upstream with a key of its own takes the calls of an account whose limit reopens in hours."""
    with patient([]) as other:
        error = {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "resets_in_seconds": 9_000,
        }
        answer = refused("429 Too Many Requests", error)
        second = {"wire": "openai", "url": other.lab.url, "key_env": "PATH"}
        with scripted(answer, upstreams={"second": second}) as front:
            assert ask(front, "chat", stream=False).text == WHOLE
            assert front.asked == 1


def test_new_conversations_skip_a_model_that_is_down() -> None:
    """After one call was handed over in an outage, calls of other sessions go to the other model at once."""
    with patient([{"fault": "overloaded", "model": "small"}], policy={"models": ["small", "large"]}) as behind:
        behind.gateway.breakers.settings = BREAKER_SETTINGS
        for number in range(4):
            session = {"x-rung-session": str(number)}
            assert messages(behind.claude(default_headers=session), stream=False).text == WHOLE
        models = [call.model for call in behind.lab.calls]
        assert models == ["small", "small", *["large"] * 4]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ["model_gone", "unauthorized", "quota"])
def test_a_broken_fallback_does_not_end_the_waiting(fault: str, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call is waited for as without a fallback if that one has a wrong model name, a refused key or an empty account."""
    monkeypatch.setenv("BACKUP_KEY", "sk-backup")
    with Lab([{"fault": fault}]) as backup:
        upstreams = {"backup": {"wire": "openai", "url": backup.url, "key_env": "BACKUP_KEY"}}
        policy = {"models": ["anthropic/small", "backup/gpt-5.1"]}
        with patient([{"fault": "overloaded", "lasts": 2.0}], policy=policy, upstreams=upstreams) as behind:
            assert ask(behind, "messages", stream=stream).text == WHOLE
            assert backup.attempts == 1


def test_the_end_beside_a_broken_fallback_is_the_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the patience ends, the client gets the error of the model that it asked for, and the journal names it."""
    monkeypatch.setenv("BACKUP_KEY", "sk-backup")
    with Lab([{"fault": "model_gone"}]) as backup:
        upstreams = {"backup": {"wire": "openai", "url": backup.url, "key_env": "BACKUP_KEY"}}
        policy = {"models": ["anthropic/small", "backup/gpt-5.1"]}
        with patient([{"fault": "overloaded"}], policy=policy, upstreams=upstreams) as behind, behind.http() as client:
            got = client.post("/v1/messages", json=body_of("messages"), headers={"x-stainless-timeout": "2"})
            assert got.status_code == 529
            assert got.headers["x-rung-failure"] == "overloaded"
            assert got.headers["x-rung-path"].endswith("fallback,wait,surface")


def test_the_log_of_a_handover_names_its_model_and_upstream(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A handover to a model of another upstream is logged with that model and upstream, not with the one that was left."""
    monkeypatch.setenv("BACKUP_KEY", "sk-backup")
    with Lab() as backup:
        upstreams = {"backup": {"wire": "openai", "url": backup.url, "key_env": "BACKUP_KEY"}}
        policy = {"models": ["anthropic/small", "backup/gpt-5.1"]}
        with patient([{"fault": "overloaded"}], policy=policy, upstreams=upstreams) as behind:
            assert ask(behind, "messages", stream=False).text == WHOLE
    assert "fallback (hand over to backup/gpt-5.1" in caplog.text  # and what it costs, if the price is known by then
    assert "hand over to anthropic" not in caplog.text
