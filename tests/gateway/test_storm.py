"""A short sample of `make storm-gateway`: random faults, then an outage, then normal operation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from tests.gateway.behind import ASK, WHOLE, Behind
from tests.waiting import wait_until

# Faults that a retry, a splice or a resume can recover.
FAULTS = ["server_error", "overloaded", "bad_gateway", "reset", "cut", "no_end", "stream_error", "truncated_json"]
CLIENTS = 16
PATIENT = {
    "headers": 20.0,
    "total": 20.0,
    "first_token": 20.0,
    "idle": 20.0,
}  # tolerates a busy machine


def answers(behind: Behind, number: int) -> list[httpx.Response]:
    """Send this many requests from concurrent clients, every other one streamed."""
    with behind.http(limits=httpx.Limits(max_connections=CLIENTS)) as client, ThreadPoolExecutor(CLIENTS) as clients:

        def ask(count: int) -> httpx.Response:
            body: dict[str, Any] = {"model": "small", "max_tokens": 2_000, "messages": ASK, "stream": count % 2 == 0}
            return client.post("/v1/messages", json=body)

        return list(clients.map(ask, range(number)))


def said(answer: httpx.Response) -> str:
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return "".join(block["text"] for block in answer.json()["content"])
    events = [
        httpx.Response(200, text=line[6:]).json() for line in answer.text.split("\n") if line.startswith("data: ")
    ]
    assert events[-1]["type"] == "message_stop"
    return "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")


def test_every_fifth_call_fails() -> None:
    """No client sees a failure, and retries add little upstream load."""
    script = {"rate": 0.2, "seed": 7, "faults": FAULTS}
    with Behind(script, policy={"retries": 8, "attempts": 20}, timeouts=PATIENT) as behind:
        got = answers(behind, 160)
        assert [answer.status_code for answer in got] == [200] * 160
        assert {said(answer) for answer in got} == {WHOLE}
        assert 160 < behind.attempts <= 1.5 * 160


def test_an_outage_is_not_made_worse() -> None:
    """During an outage the upstream gets few requests, and soon after it all clients are served."""
    with Behind([{"fault": "overloaded"}], timeouts=PATIENT) as behind:
        got = answers(behind, 160)
        assert {answer.status_code for answer in got} <= {503, 529}
        assert behind.attempts <= 1.2 * 160
        behind.lab.use()
        wait_until(lambda: answers(behind, 1)[0].status_code == 200, pause=0.1)
        assert {said(answer) for answer in answers(behind, 32)} == {WHOLE}


def test_a_stream_that_will_not_go_on() -> None:
    """An interrupted stream is resumed as often as a failed call is retried."""
    rules = [{"fault": "cut", "after": 7, "request": 1}]
    rules += [{"fault": fault, "request": at} for at, fault in enumerate(FAULTS[:4] * 2, start=2)]
    with Behind(rules, policy={"retries": 9, "attempts": 20}, timeouts=PATIENT) as behind:
        assert said(answers(behind, 1)[0]) == WHOLE
        assert behind.attempts == 10
