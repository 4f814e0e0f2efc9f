"""Clients that disconnect, retry, wait or share a session; keys, budgets and the journal."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import pytest

import rung
from rung.core.domain import events as ev
from tests.gateway.behind import ASK, LONG, WHOLE, WIRES, Behind, ask, messages
from tests.waiting import wait_until as until
from tests.wires.strict import PATHS

if TYPE_CHECKING:
    from pathlib import Path

GOOD: Any = {"model": "small", "max_tokens": 500, "messages": ASK}


def body(wire: str, **more: Any) -> dict[str, Any]:
    """Return the same request body for each wire."""
    return {"model": "small", "input": ASK, **more} if wire == "responses" else {**GOOD, **more}


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_that_leaves_takes_its_attempt_along(wire: str) -> None:
    """When a client disconnects, the upstream attempt is cancelled at once."""
    with Behind(gap=0.1, timeouts={"idle": 30.0}) as behind:
        asked = body(wire, stream=True)
        with behind.http() as client, client.stream("POST", PATHS[wire], json=asked) as answer:
            next(answer.iter_bytes())
        until(lambda: behind.lab.calls[0].ended == "left")
        assert behind.lab.calls[0].tokens < 40
        until(lambda: behind.gateway.active_requests == 0)


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_that_leaves_before_there_is_an_answer(wire: str) -> None:
    """A client that disconnects before the first byte, streamed or not, cancels the upstream attempt."""
    with Behind([{"fault": "slow", "seconds": 60}], timeouts={"headers": 90.0, "total": 90.0}) as behind:
        for calls, stream in enumerate((False, True), 1):
            leave_after(behind, wire, calls, stream=stream)
            until(lambda: behind.gateway.active_requests == 0)
        until(lambda: [call.ended for call in behind.lab.calls] == ["left", "left"])


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_that_leaves_while_it_waits(wire: str) -> None:
    """A client that disconnects during a backoff wait is not retried for."""
    rule = {"fault": "rate_limit", "retry_after": 20}
    with Behind([rule]) as behind:
        leave_after(behind, wire, 1, stream=False)
        until(lambda: behind.gateway.active_requests == 0)
        assert behind.attempts == 1


def test_a_stream_that_is_late_hears_pings() -> None:
    """A stream whose content is held back sends pings, then one complete answer; its failure is hidden."""
    rules = [{"fault": "overloaded", "request": 1, "retry_after": 1}]
    with Behind(rules, header_hold_seconds=0.2) as behind, behind.http() as client:
        text = client.post("/v1/messages", json={**GOOD, "stream": True}).text
        assert text.startswith("event: ping")
        assert text.count("event: message_start") == text.count("event: message_stop") == 1
        assert "error" not in text


def test_a_session_stays_on_the_model_that_helped() -> None:
    """After a fallback, the same session uses the other model directly; another session does not."""
    with Behind([{"fault": "model_gone", "model": "small"}], policy={"models": ["small", "large"]}) as behind:
        mine = {"x-claude-code-session-id": "one"}
        for _ in range(3):
            assert messages(behind.claude(default_headers=mine), stream=False).text == WHOLE
        assert [call.model for call in behind.lab.calls] == ["small", "large", "large", "large"]
        messages(behind.claude(default_headers={"x-claude-code-session-id": "two"}), stream=False)
        assert [call.model for call in behind.lab.calls][4:] == ["small", "large"]


def test_a_session_is_known_by_how_it_began() -> None:
    """Without an id, a session is identified by the beginning of its conversation."""
    with Behind([{"fault": "model_gone", "model": "small"}], policy={"models": ["small", "large"]}) as behind:
        ask(behind, "messages", stream=False)
        longer = [*ASK, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "count to 40 as apple"}]
        ask(behind, "messages", stream=False, messages=longer)
        assert [call.model for call in behind.lab.calls] == ["small", "large", "large"]


def test_a_budget_pauses() -> None:
    """A session's spend is counted by list price; alerts precede the limit, and at the limit it is rejected."""
    prices = {"small": {"input": 1.0, "output": 1_000.0}}  # 40 tokens out cost 4 cents
    with Behind(budgets={"session": 0.05}, prices=prices) as behind:
        client = behind.claude(default_headers={"x-rung-session": "s"})
        messages(client, stream=False)
        messages(client, stream=True)
        with pytest.raises(anthropic.RateLimitError, match="spend limit"):
            messages(client, stream=False)
        assert behind.attempts == 2
        assert any("75 %" in line for line in behind.log_lines)
        messages(behind.claude(default_headers={"x-rung-session": "t"}), stream=False)


def test_a_fall_back_that_is_too_dear_does_not_happen() -> None:
    """There is no fallback to a model whose estimated cost exceeds the remaining budget."""
    prices = {"small": {"input": 1.0, "output": 100.0}, "large": {"input": 1.0, "output": 100_000.0}}
    rules = [{"fault": "overloaded", "model": "small", "request": "2-9"}]
    with Behind(rules, budgets={"session": 1.0}, prices=prices, policy={"models": ["small", "large"]}) as behind:
        client = behind.claude(default_headers={"x-rung-session": "s"})
        messages(client, stream=False)
        with pytest.raises(anthropic.APIStatusError):
            messages(client, stream=False)
        assert "large" not in {call.model for call in behind.lab.calls}


def test_the_journal_has_it_all_and_no_prompt(tmp_path: Path) -> None:
    """Successes, failures and decisions are journaled; prompts, answers and keys are not."""
    journal = rung.journal(tmp_path / "j.db")
    rules = [{"fault": "overloaded", "request": 2}, {"fault": "cut", "after": 9, "request": 4}]
    with Behind(rules, journal=journal) as behind:
        client = behind.claude(default_headers={"x-rung-session": "s", "x-rung-project": "site"})
        messages(client, stream=False)
        messages(client, stream=False)
        messages(client, stream=True)
        query = "SELECT id, status, project, session FROM incident ORDER BY opened_at"
        # The first call is booked when the price of its model has been looked up.
        until(lambda: journal.flush() and len(list(journal.read(query))) == 3)
        rows = journal.read(query)
    assert [row[1:] for row in rows] == [
        ("succeeded", "site", "s"),
        ("recovered", "site", "s"),
        ("recovered", "site", "s"),
    ]
    again = rung.journal(tmp_path / "j.db")
    told = [event for row in rows for event in again.events(row[0])]
    assert [type(event) for event in again.events(rows[1][0])] == [
        ev.Opened, ev.AttemptFailed, ev.Decided, ev.AttemptSucceeded,
    ]  # fmt: skip
    assert "apple" not in repr(told)
    assert "sk-ant-test" not in repr(told)
    again.close()


def test_settings_are_read_again() -> None:
    """Changed settings apply to the next request; invalid settings are logged and not applied."""
    with Behind([{"fault": "model_gone", "model": "small"}]) as behind:
        with pytest.raises(anthropic.NotFoundError):
            ask(behind, "messages", stream=False)
        behind.policy_table["models"] = ["small", "large"]
        assert behind.served.reload_settings(behind.settings)
        assert ask(behind, "messages", stream=False).text == WHOLE
        assert not behind.served.reload_settings(lambda: behind.settings(port=-1))
        assert any("settings not reloaded" in line for line in behind.log_lines)
        assert ask(behind, "messages", stream=False).text == WHOLE


def test_it_drains() -> None:
    """On shutdown, new requests are rejected and requests in flight finish."""
    with Behind(delay=0.5) as behind:
        got: list[Any] = []
        work = threading.Thread(
            target=lambda: got.append(httpx.post(f"{behind.url}/v1/messages", json=GOOD, timeout=LONG))
        )
        work.start()
        until(lambda: behind.attempts == 1)
        behind.served.stop()
        work.join()
        behind.thread.join(LONG)
        assert got[0].status_code == 200
        assert not behind.thread.is_alive()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_resend_joins_what_is_running(wire: str, stream: bool) -> None:
    """A retry of a request in flight joins it; the attempt is cancelled when both clients have left."""
    with Behind([{"fault": "slow", "seconds": 600}], timeouts={"headers": 900.0, "total": 900.0}) as behind:
        tasks = [Resending(behind, wire, stream=stream, count=count) for count in (0, 1)]
        tasks[0].start()
        until(lambda: len(behind.gateway.in_flight) == 1)  # registered after a short delay
        tasks[1].start()
        until(lambda: behind.gateway.metrics.counts["rung_joined_total", ""] == 1)
        until(lambda: behind.attempts == 1)
        tasks[0].leave()
        assert behind.lab.calls[0].ended != "left"
        tasks[1].leave()
        until(lambda: behind.lab.calls[0].ended == "left")
        until(lambda: behind.gateway.active_requests == 0)


class Resending:
    """A client that can disconnect."""

    def __init__(self, behind: Behind, wire: str, *, stream: bool, count: int) -> None:
        asked = json.dumps(body(wire, stream=stream)).encode()
        lines = (
            f"POST {PATHS[wire]} HTTP/1.1", "host: 127.0.0.1", "x-api-key: k", f"x-stainless-retry-count: {count}",
            f"content-length: {len(asked)}", "", "",
        )  # fmt: skip
        self._sent = "\r\n".join(lines).encode() + asked
        self._socket = socket.create_connection(("127.0.0.1", behind.served.port))

    def start(self) -> None:
        self._socket.sendall(self._sent)

    def leave(self) -> None:
        self._socket.close()


def leave_after(behind: Behind, wire: str, calls: int, *, stream: bool) -> None:
    """Send a request, and disconnect after this many upstream calls."""
    client = Resending(behind, wire, stream=stream, count=0)
    client.start()
    until(lambda: len(behind.lab.calls) == calls)
    client.leave()


def test_both_get_the_answer() -> None:
    """A joined request gets the same response as the first."""
    slow = {"fault": "slow", "seconds": 4, "request": 1}
    with Behind([slow], timeouts={"headers": 90.0, "total": 90.0}) as behind:
        got: list[Any] = []
        clients = [behind.http(headers={"x-stainless-retry-count": str(count), "x-api-key": "k"}) for count in (0, 1)]
        work = [
            threading.Thread(target=lambda one=one: got.append(one.post("/v1/messages", json=GOOD).json()))
            for one in clients
        ]
        work[0].start()
        until(lambda: len(behind.gateway.in_flight) == 1)
        work[1].start()
        for one in work:
            one.join()
        assert got[0] == got[1]
        assert got[0]["content"][0]["text"] == WHOLE
        assert behind.attempts == 1


def test_who_does_not_say_that_it_sends_again_is_asked_for() -> None:
    """Identical requests that are not marked as retries are independent."""
    with Behind() as behind, behind.http() as client:
        for _ in range(2):
            assert client.post("/v1/messages", json=GOOD).status_code == 200
        assert behind.attempts == 2
