"""A tenant of a shared gateway cannot spend more than its limits: not in parallel, not unseen, not unpriced."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import rung
from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Kind
from rung.core.domain.usage import Usage
from rung.core.policy.model_prices import ModelPrice
from rung.core.policy.spend_limits import SpendLimits
from rung.gateway.inbound_request import InboundRequest
from rung.gateway.keys import RequestRejected, hash_key
from rung.gateway.spending.ledger import SpendLedger
from rung.gateway.upstream.settings import UpstreamSettings
from rung.store.queries.spend import spent_in_month
from rung.wires.registry import MESSAGES
from tests.gateway.behind import ASK, LONG, Behind
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

KEY = "rung-a-tenants-key"
DOLLAR = {"small": {"input": 0.0, "output": 25_000.0}}  # 40 words cost one dollar
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


def limited(dollars: float, **row: Any) -> list[dict[str, Any]]:
    return [{"hash": hash_key(KEY), "dollars": dollars, **row}]


def body_of(wire: str = "messages", **more: Any) -> dict[str, Any]:
    if wire == "responses":
        return {"model": "small", "max_output_tokens": 40, "input": ASK[0]["content"], **more}
    limit = "max_completion_tokens" if wire == "chat" else "max_tokens"
    return {"model": "small", limit: 40, "messages": ASK, **more}


def ask(behind: Behind, wire: str = "messages", **more: Any) -> httpx.Response:
    with httpx.Client(base_url=behind.url, timeout=LONG, headers={"authorization": f"Bearer {KEY}"}) as client:
        return client.post(PATHS[wire], json=body_of(wire, **more))


def leave(behind: Behind, wire: str = "messages", *, stream: bool) -> None:
    """Ask, and leave as soon as the upstream works on it; a stream is left after some of its text has come."""
    before = behind.attempts

    async def run() -> None:
        headers = {"authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(base_url=behind.url, timeout=LONG, headers=headers) as client:
            if stream:
                async with client.stream("POST", PATHS[wire], json=body_of(wire, stream=True)) as answer:
                    assert answer.status_code == 200, await answer.aread()
                    async for piece in answer.aiter_text():
                        if "apple2" in piece:
                            return
            else:
                asking = asyncio.create_task(client.post(PATHS[wire], json=body_of(wire)))
                await asyncio.to_thread(wait_until, lambda: behind.attempts > before)
                asking.cancel()
                with suppress(asyncio.CancelledError):
                    await asking

    asyncio.run(run())
    wait_until(lambda: behind.gateway.active_requests == 0)


def spent(behind: Behind) -> float:
    return behind.gateway.ledger.spent.get(hash_key(KEY), 0.0)


def test_fifty_calls_of_a_dollar_on_two_dollars() -> None:
    """Of 50 parallel calls of $1 on a key of $2 at most two reach the provider."""

    async def fifty(url: str) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=50)
        headers = {"x-api-key": KEY}
        async with httpx.AsyncClient(base_url=url, timeout=LONG, limits=limits, headers=headers) as client:
            return await asyncio.gather(*(client.post("/v1/messages", json=body_of()) for _ in range(50)))

    with Behind(keys=limited(2.0), prices=DOLLAR, delay=0.3) as behind:
        answers = asyncio.run(fifty(behind.url))
        passed = [answer for answer in answers if answer.status_code == 200]
        assert 1 <= len(passed) <= 2
        assert behind.attempts <= 2
        assert {answer.status_code for answer in answers} == {200, 429}
        assert spent(behind) == pytest.approx(1.0 * len(passed))
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert (refused.headers["retry-after"], refused.headers["x-should-retry"]) == ("1", "true")
        text = refused.json()["error"]["message"]
        assert text.startswith("the $2.00 left of the $2.00 for this key are reserved by calls in flight")
        assert classify(Evidence(text=text, status=429)).kind is Kind.RATE_LIMIT
        assert not behind.gateway.ledger.purses.reserved


@pytest.mark.parametrize("wire", list(PATHS))
def test_a_stream_without_usage_is_paid(wire: str) -> None:
    """A streamed answer is paid although its client does not ask for usage, and the client gets none."""
    with Behind(keys=limited(2.0), prices=DOLLAR) as behind:
        first = ask(behind, wire, stream=True)
        assert spent(behind) == pytest.approx(1.0)
        if wire == "chat":
            assert '"completion_tokens"' not in first.text
            assert first.text.rstrip().endswith("data: [DONE]")
            asked = ask(behind, wire, stream=True, stream_options={"include_usage": True})
            assert '"completion_tokens"' in asked.text
        else:
            ask(behind, wire, stream=True)
        assert ask(behind, wire, stream=True).status_code == 429
        assert behind.attempts == 2


@pytest.mark.parametrize("wire", list(PATHS))
def test_leaving_a_stream_early_is_paid(wire: str) -> None:
    """A client that leaves after the text and before the usage pays for what it received."""
    with Behind(keys=limited(0.1), prices=DOLLAR, gap=0.02) as behind:
        leave(behind, wire, stream=True)
        assert 0.05 <= spent(behind) <= 1.2
        left = spent(behind)
        while spent(behind) < 0.1:
            leave(behind, wire, stream=True)
        assert left
        assert ask(behind, wire).status_code == 429


def test_leaving_a_whole_answer_early_is_paid() -> None:
    """A client that leaves before an answer that is not streamed pays its estimate: the provider may complete it."""
    with Behind(keys=limited(1.0), prices=DOLLAR, delay=5.0) as behind:
        leave(behind, stream=False)
        assert spent(behind) == pytest.approx(1.0)
        assert ask(behind).status_code == 429


def test_early_leavers_are_in_the_journal(tmp_path: Path) -> None:
    """What early leavers spent outlives the process."""
    with Behind(
        prices=DOLLAR, journal=rung.journal(tmp_path / "j.db"), delay=5.0, budgets={"month": 5.0}, keys=limited(9.0)
    ) as behind:
        leave(behind, stream=False)
    with rung.journal(tmp_path / "j.db") as journal:
        assert sum(spent_in_month(journal, time.time()).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_every_attempt_is_paid(wire: str) -> None:
    """An answer in three parts, because its stream was cut twice, costs what the three attempts used."""
    rules = [{"fault": "cut", "after": 20, "request": 1}, {"fault": "cut", "after": 5, "request": 2}]
    with Behind(rules, keys=limited(100.0), prices=DOLLAR) as behind:
        answer = ask(behind, wire, stream=True)
        assert "apple40" in answer.text
        used = sum(call.tokens for call in behind.lab.calls)
        assert behind.attempts == 3
        # Parts without usage are estimated; a reset may take the last tokens of a part with it.
        assert 0.8 * used / 40 <= spent(behind) <= 2 * used / 40


def test_parts_of_a_whole_answer_are_paid() -> None:
    """An answer that ended at the provider's limit and was continued costs all its attempts."""
    rules = [{"fault": "max_tokens", "after": 20, "request": 1}]
    with Behind(rules, keys=limited(100.0), prices=DOLLAR) as behind:
        assert ask(behind, max_tokens=400).status_code == 200
        used = sum(call.tokens for call in behind.lab.calls)
        assert behind.attempts > 1
        assert spent(behind) == pytest.approx(used / 40)


def test_a_retry_waits_with_its_reservation() -> None:
    """A call that is retried is not starved by calls that came after it, and it is paid once."""
    rules = [{"fault": "overloaded", "request": 1}]
    with Behind(rules, keys=limited(1.0), prices=DOLLAR) as behind:
        assert ask(behind).status_code == 200
        assert behind.attempts == 2
        assert spent(behind) == pytest.approx(1.0)


def test_a_spent_call_is_not_retried() -> None:
    """A stream whose first part has used up the budget is not resumed."""
    with Behind([{"fault": "cut", "after": 20}], keys=limited(0.3), prices=DOLLAR) as behind:
        answer = ask(behind, "chat", stream=True)
        assert '"error"' in answer.text
        assert ask(behind).status_code == 429
        assert behind.attempts == 1


def test_a_session_moved_to_an_unknown_price(tmp_path: Path) -> None:
    """A session that an operator has moved to a model without a price is refused with the words that a first call gets."""
    journal = rung.journal(tmp_path / "j.db")
    with Behind(keys=limited(1e6), prices=DOLLAR, journal=journal) as behind:
        journal.runs.send(f"model/{hash_key(KEY)[:12]}/s", {"model": "mystery"})
        with behind.http(headers={"x-api-key": KEY, "x-rung-session": "s"}) as client:
            refused = wait_until(lambda: _refused(client.post("/v1/messages", json=body_of())))
        assert refused.status_code == 403
        assert "the price of model 'mystery' is unknown" in refused.json()["error"]["message"]
        assert {call.model for call in behind.lab.calls} <= {"small"}


def _refused(answer: httpx.Response) -> httpx.Response | None:
    return answer if answer.status_code != 200 else None


def test_an_unknown_price_is_not_free() -> None:
    """A model without a price is refused where a limit applies, with words that say how to price it."""
    with Behind(keys=[*limited(2.0), {"hash": hash_key("rung-unlimited")}]) as behind:
        refused = ask(behind, model="no-such-model")
        assert refused.status_code == 403
        assert refused.json()["error"]["message"] == (
            "the price of model 'no-such-model' is unknown, and this call has a spend limit: set `input` and `output`"
            " (US dollars for a million tokens, 0 if it is free) in [gateway.prices.'no-such-model']"
        )
        assert behind.attempts == 0
        with behind.http(headers={"x-api-key": "rung-unlimited"}) as client:
            assert client.post("/v1/messages", json=body_of()).status_code == 200


def test_the_dearest_named_model_is_paid() -> None:
    """A request that names fallback models costs as much as the dearest of them, and none of unknown price."""
    prices = {**DOLLAR, "large": {"input": 0.0, "output": 250_000.0}}
    with Behind(keys=limited(100.0), prices=prices) as behind:
        assert ask(behind, "chat", models=["large"]).status_code == 200
        assert spent(behind) == pytest.approx(10.0)
        refused = ask(behind, "chat", models=["large", "mystery"])
        assert refused.status_code == 403
        assert "the price of model 'mystery' is unknown" in refused.json()["error"]["message"]
        assert behind.attempts == 1


@pytest.mark.parametrize("option", [{"service_tier": "priority"}, {"speed": "fast"}])
def test_dearer_options_are_refused(option: dict[str, str]) -> None:
    """An option that multiplies the list price is refused where a limit applies."""
    with Behind(keys=limited(100.0), prices=DOLLAR) as behind:
        refused = ask(behind, **option)
        assert refused.status_code == 403
        assert "is unknown, and this call has a spend limit: leave it out" in refused.json()["error"]["message"]
        assert behind.attempts == 0


def test_a_listed_price_is_found_at_the_first_call() -> None:
    """A model of the price list needs no setting: its price is looked up before its first call."""
    with Behind(keys=limited(2.0)) as behind:
        assert ask(behind, model="claude-sonnet-4-5").status_code == 200
        assert spent(behind) > 0


def test_a_fallback_of_unknown_price_is_not_taken() -> None:
    """Under a limit no call is handed over to a model of unknown price."""
    policy = {"models": ["small", "mystery"], "retries": 1}
    with Behind([{"fault": "overloaded", "model": "small"}], keys=limited(9.0), prices=DOLLAR, policy=policy) as behind:
        assert ask(behind).status_code == 529
        assert {call.model for call in behind.lab.calls} == {"small"}


def test_refusals_say_what_is_left_and_when_it_renews() -> None:
    """A spent month says when it renews, a spent key that it does not."""
    with Behind(keys=limited(0.5), prices=DOLLAR) as behind:
        ask(behind)
        refused = ask(behind)
        assert refused.json()["error"]["message"] == (
            "budget of $0.50 for this key is spent (spend limit): $0.00 left; it does not renew"
        )
        assert (refused.headers["x-should-retry"], "retry-after" in refused.headers) == ("false", False)
    with Behind(budgets={"month": 0.5}, prices=DOLLAR) as behind:
        ask(behind)
        refused = ask(behind)
        assert "for this month is spent (spend limit): $0.00 left; it renews on " in refused.json()["error"]["message"]
        assert 0 < int(refused.headers["retry-after"]) <= 31 * 86_400


def test_summaries_are_paid() -> None:
    """A call whose history is summarised by another model pays for the summary."""
    prices = {**DOLLAR, "summary": {"input": 0.0, "output": 100_000.0}}
    history = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 2_000} for n in range(9)]
    with Behind(keys=limited(1_000.0), prices=prices, window=9_000, summary_model="summary") as behind:
        ask(behind, messages=history)
        used = {call.model: call.tokens for call in behind.lab.calls if call.status == 200}
        assert used["summary"] > 0
        assert spent(behind) >= used["summary"] / 10


def inbound(session: str) -> InboundRequest:
    return InboundRequest(
        wire=MESSAGES,
        upstream=UpstreamSettings(name="anthropic", wire="anthropic", url="http://127.0.0.1:9"),
        target="/v1/messages",
        raw_headers=[],
        headers={b"x-rung-session": session.encode()},
        session=session,
        upstream_headers=[],
        body=b"{}",
        model="small",
    )


def test_made_up_sessions_reopen_nothing() -> None:
    """Ten thousand made-up sessions neither evict a month's spend nor that of a session that has spent."""
    ledger, now = SpendLedger(), time.time()
    ledger.limits = SpendLimits(session=1.0, month=10.0)

    async def run() -> None:
        for session, tokens in (("mine", 1), ("other", 9)):
            reservation = await ledger.admit(inbound(session), now)
            ledger.settle(reservation, inbound(session), "small", ModelPrice(0.0, 1.0), Usage(output=tokens), now)
        for n in range(10_050):
            with suppress(RequestRejected):
                await ledger.admit(inbound(f"made-up-{n}"), now)
        with pytest.raises(RequestRejected, match="for this month is spent"):
            await ledger.admit(inbound("mine"), now)
        ledger.limits = SpendLimits(session=1.0)
        with pytest.raises(RequestRejected, match="for this session is spent"):
            await ledger.admit(inbound("mine"), now)

    asyncio.run(run())
    assert len(ledger.spent) == 3


def test_two_gateways_share_one_budget(tmp_path: Path) -> None:
    """Gateways that share a journal do not spend a budget twice: of 50 parallel calls of $1 on $2 at most two pass."""
    first, second = (
        Behind(keys=limited(2.0), prices=DOLLAR, delay=0.3, journal=rung.journal(tmp_path / "j.db")) for _ in range(2)
    )

    async def fifty() -> list[httpx.Response]:
        async with httpx.AsyncClient(timeout=LONG, headers={"x-api-key": KEY}) as client:
            urls = [f"{behind.url}/v1/messages" for behind in (first, second)]
            return await asyncio.gather(*(client.post(urls[n % 2], json=body_of()) for n in range(50)))

    with first, second:
        wait_until(lambda: first.gateway.ledger.is_shared and second.gateway.ledger.is_shared)
        answers = asyncio.run(fifty())
        assert 1 <= first.attempts + second.attempts <= 2
        assert {answer.status_code for answer in answers} == {200, 429}
