"""Status of a gateway: what it shows about providers, keys and calls, who may read it, and that no secret is in it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rung.cli.serve.status_table import status_lines
from rung.gateway.keys import RequestRejected, new_key
from rung.gateway.status_page import answer_status
from tests.gateway.pooled import KEYS, LIMITED, OK, ask, pool
from tests.gateway.scripted import Scripted, message, refused, whole
from tests.security.upstream.raw_upstream import RawUpstream

if TYPE_CHECKING:
    from collections.abc import Callable

PRICES = {"small": {"input": 100_000.0, "output": 100_000.0}}
FORGED = refused(
    "500 Internal Server Error", {"message": "failed for Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"}
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def status_of(front: Scripted) -> dict[str, Any]:
    with front.http() as client:
        got = client.get("/status")
    assert got.status_code == 200
    document: dict[str, Any] = got.json()
    return document


def test_keys_and_health() -> None:
    """The status shows each key by its variable with its state, the failures by kind, and the cost."""
    with pool(lambda key: LIMITED if key == "KEY_B" else OK, "AB", prices=PRICES) as front:
        assert ask(front).status_code == 200
        (upstream,) = status_of(front)["upstreams"]
    assert (upstream["name"], upstream["type"], upstream["wires"]) == ("main", "openai", ["chat", "responses"])
    assert upstream["host"] == f"127.0.0.1:{front.upstream.port}"
    assert (upstream["state"], upstream["successes"], upstream["failures"]) == ("ok", 1, {"rate_limit": 1})
    assert upstream["last_error"]["kind"] == "rate_limit"
    assert upstream["latency_p50"] > 0
    assert upstream["dollars"] == pytest.approx(1.5)
    free, resting = upstream["keys"]
    assert free == {"name": "KEY_A", "state": "usable", "until": None, "models": []}
    assert (resting["name"], resting["state"], resting["models"]) == ("KEY_B", "limited", ["small"])
    assert 0 < resting["until"] - upstream["last_error"]["at"] <= 30


def test_no_secrets() -> None:
    """Neither the gateway's keys nor a key that an upstream quotes are in the status, the metrics or the printed table."""
    with pool(lambda _: FORGED, "AB", policy={"retries": 2}) as front:
        assert status_of(front)["upstreams"][0]["state"] == "unused"
        assert ask(front).status_code == 500
        document = status_of(front)
        with front.http() as client:
            metrics = client.get("/metrics").text
    assert document["upstreams"][0]["state"] == "failing"
    shown = str(document) + metrics + "\n".join(status_lines(document, "http://x", 80))
    assert not any(value in shown for value in (*KEYS.values(), "sk-proj-abc"))
    assert 'rung_key_state{upstream="main",key="KEY_A",state="usable"} 1' in metrics


def test_translations() -> None:
    """Translated calls are counted by pair of wires, and what was dropped by field, in the status and the metrics."""
    with RawUpstream(whole(message({"type": "text", "text": "fine"})), close=True) as upstream:
        row = {"wire": "anthropic", "url": upstream.url, "key_envs": ["KEY_A", "KEY_B"]}
        with Scripted(upstreams={"main": row}, policy={"models": ["main/claude-x"]}) as front:
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "seed": 7, "logprobs": True}
            with front.http() as client:
                got = client.post("/v1/chat/completions", json=body)
                metrics = client.get("/metrics").text
            (shown,) = status_of(front)["upstreams"]
    assert got.status_code == 200
    assert shown["translated"] == [{"client": "chat", "upstream": "messages", "calls": 1}]
    assert set(shown["dropped"]) == {each.strip() for each in got.headers["x-rung-dropped"].split(",")}
    assert 'rung_translated_total{upstream="main",client_wire="chat",upstream_wire="messages"} 1' in metrics


LOCAL, REMOTE = ("127.0.0.1", 5), ("192.0.2.7", 5)


@pytest.mark.parametrize(
    ("client", "headers", "has_keys", "allowed"),
    [
        (LOCAL, {}, False, "details"),
        (LOCAL, {}, True, "details"),
        (("::1", 5), {}, False, "details"),
        (LOCAL, {b"x-forwarded-for": b"192.0.2.7"}, False, ""),
        (None, {}, False, ""),
        (REMOTE, {}, False, ""),
        (REMOTE, {}, True, ""),
        (REMOTE, {b"x-api-key": b"wrong"}, True, ""),
        (REMOTE, {b"x-api-key": b"right"}, True, "summary"),
    ],
)
def test_who_may_read_it(client: Any, headers: dict[bytes, bytes], has_keys: bool, allowed: str) -> None:
    """The status is for clients of this machine; others need a key of the gateway, and see no models and no error texts."""
    key, digest = new_key()
    given = {name: value.replace(b"right", key.encode()) for name, value in headers.items()}
    rows = {"keys": [{"hash": digest, "name": "k"}]} if has_keys else {}
    with pool(lambda _: LIMITED, "A", policy={"retries": 0}, **rows) as front:
        with front.http(headers={"x-api-key": key}) as sender:
            sender.post("/v1/chat/completions", json={"model": "small", "messages": [{"role": "user", "content": "x"}]})
        read: Callable[[], Any] = lambda: answer_status(front.gateway, {"client": client}, given)  # noqa: E731
        if not allowed:
            with pytest.raises(RequestRejected) as refusal:
                read()
            assert refusal.value.status in (401, 403)
            return
        text = read().body.decode()
    assert ("Rate limit reached" in text) == (allowed == "details")
    assert ('"model":"small"' in text) == (allowed == "details")


def test_the_command() -> None:
    """`rung gateway status` prints the status as a table, as JSON, and a clear error if there is no gateway."""
    run = [sys.executable, "-m", "rung", "gateway", "status", "--url"]
    with pool(lambda key: LIMITED if key == "KEY_B" else OK, "AB") as front:
        assert ask(front).status_code == 200
        url = front.url
        printed = subprocess.run([*run, url], capture_output=True, text=True, check=True).stdout
        as_json = subprocess.run([*run, url, "--json"], capture_output=True, text=True, check=True).stdout
    assert "key KEY_B: limited for" in printed
    assert '"upstreams"' in as_json
    done = subprocess.run([*run, url], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"no gateway at {url}" in done.stderr


@pytest.mark.parametrize("width", [20, 60, 80, 100])
def test_the_table_fits(width: int) -> None:
    """No line is longer than the width, from 60 columns on, however long names and errors are."""
    upstream = {
        "name": "a-provider-with-quite-a-long-name", "type": "anthropic", "host": "llm.example.com:8443", "wires": ["messages"],
        "state": "failing", "successes": 123_456, "failures": {"rate_limit": 3, "overloaded": 12}, "latency_p50": 1.234,
        "keys": [{"name": "K" * 70, "state": "limited", "until": 130.0, "models": ["m1", "m2"]}], "last_seen": 99.0,
        "last_error": {"kind": "overloaded", "message": "overloaded: " + "x" * 180, "at": 40.0},
        "circuits": [{"model": "m1", "state": "open", "probe_in": 3.0}], "probes": [{"model": "m2", "due_at": 105.0}],
        "models": [], "translated": [{"client": "chat", "upstream": "messages", "calls": 7}],
        "dropped": {f"field_{number}": number for number in range(20)}, "dollars": 12_345.678,
    }  # fmt: skip
    document = {"v": 1, "at": 100.0, "started_at": 0.0, "running": 1, "upstreams": [upstream]}
    lines = list(status_lines(document, "http://127.0.0.1:8484", width))
    assert max(map(len, lines)) <= max(60, width)
