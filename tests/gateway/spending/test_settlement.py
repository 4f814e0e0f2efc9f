"""Calls are settled with their whole usage: cache reads and writes, tiers, and streams that break off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import ConfigError
from rung.core.domain.usage import Usage
from rung.core.policy.call_costs import SessionUsage
from rung.core.policy.parser import parse_policy_file
from rung.gateway.settings import settings_from
from rung.store.session_usage import session_usage
from tests.gateway.behind import ASK, NEVER, WHOLE, Behind, messages
from tests.gateway.scripted import Scripted, completion, message, scripted, stream, whole
from tests.security.upstream.raw_upstream import RawUpstream
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SONNET = {
    "input": 3.0,
    "output": 15.0,
    "cache_read": 0.3,
    "cache_write": 3.75,
    "tiers": [{"above": 200_000, "input": 6.0, "output": 22.5, "cache_read": 0.6, "cache_write": 7.5}],
}
OPUS = {"input": 5.0, "output": 25.0, "cache_read": 0.5, "cache_write": 6.25}
CACHED = {
    "input_tokens": 100,
    "cache_read_input_tokens": 50_000,
    "cache_creation_input_tokens": 3_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
    "output_tokens": 40,
}
CACHED_DOLLARS = (100 * 3 + 50_000 * 0.3 + 1_000 * 3.75 + 2_000 * 6 + 40 * 15) / 1e6
TEXT = {"type": "text", "text": "hello"}
LIMIT = {"budgets": {"session": 100.0}, "prices": {"small": SONNET}}


def spent(front: Scripted, path: str, body: dict[str, Any]) -> float:
    """Send a request of session `s`; return what the session has spent then."""
    answer = front.http().post(path, json={"model": "small", **body}, headers={"x-rung-session": "s"})
    assert answer.status_code == 200
    return front.gateway.ledger.spent["budget/session/s"]


ASKED: dict[str, Any] = {"max_tokens": 500, "messages": [{"role": "user", "content": "hi"}]}


def test_a_message_with_cache_reads_and_writes() -> None:
    """Reads and writes of both lifetimes are settled at their own prices."""
    with scripted(whole({**message(TEXT), "usage": CACHED}), **LIMIT) as front:
        assert spent(front, "/v1/messages", ASKED) == pytest.approx(CACHED_DOLLARS)


def test_a_message_above_a_tier() -> None:
    """A prompt whose cached part lifts it above a tier is settled at the tier's price as a whole."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": 200_000, "output_tokens": 40}
    with scripted(whole({**message(TEXT), "usage": usage}), **LIMIT) as front:
        assert spent(front, "/v1/messages", ASKED) == pytest.approx((6 + 200_000 * 0.6 + 40 * 22.5) / 1e6)


def test_a_chat_completion_from_the_cache() -> None:
    """The cached part of a chat completion's prompt is settled at the price of the cache."""
    usage = {"prompt_tokens": 2_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1_920}}
    with scripted(whole({**completion("hello"), "usage": usage}), **LIMIT) as front:
        dollars = (80 * 3 + 1_920 * 0.3 + 5 * 15) / 1e6
        assert spent(front, "/v1/chat/completions", ASKED) == pytest.approx(dollars)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_translated_call_is_settled_as_its_upstream_reports_it(
    monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    """A chat completion from Anthropic pays for an hour's cache writes, of which the client's wire knows nothing."""
    monkeypatch.setenv("OTHER_KEY", "key")
    events = stream(*start({**CACHED, "output_tokens": 1}), *END)
    answer = events if is_stream else whole({**message(TEXT), "usage": CACHED})
    with RawUpstream(lambda _: answer, close=True) as upstream:
        other = {"wire": "anthropic", "url": upstream.url, "key_env": "OTHER_KEY"}
        with Scripted(policy={"models": ["other/small"]}, upstreams={"other": other}, **LIMIT) as front:
            assert spent(front, "/v1/chat/completions", {**ASKED, "stream": is_stream}) == pytest.approx(CACHED_DOLLARS)


def start(usage: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a streamed message up to its text."""
    return [
        {"type": "message_start", "message": {**message(), "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    ]


END: list[dict[str, Any]] = [
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 40}},
    {"type": "message_stop"},
]


def test_a_stream_is_settled_like_a_whole_message() -> None:
    """The cache counts at the beginning of a stream and the output at its end make one usage."""
    with scripted(stream(*start({**CACHED, "output_tokens": 1}), *END), **LIMIT) as front:
        assert spent(front, "/v1/messages", {**ASKED, "stream": True}) == pytest.approx(CACHED_DOLLARS)


def test_a_stream_that_breaks_keeps_its_cache_counts() -> None:
    """An attempt that breaks off pays for its prompt as its first event states it, with the share from the cache."""
    broken = stream(*start({**CACHED, "output_tokens": 1}), cut=True)
    rest = stream(*start({"input_tokens": 10, "output_tokens": 1}), *END)
    with scripted(broken, rest, **LIMIT) as front:
        dollars = spent(front, "/v1/messages", {**ASKED, "stream": True})
        prompt = CACHED_DOLLARS - 40 * 15 / 1e6
        if dollars < prompt + (10 * 3 + 40 * 15) / 1e6:  # the end of the stream may be settled after the client has it
            wait_until(lambda: front.gateway.ledger.spent["budget/session/s"] > dollars)
            dollars = front.gateway.ledger.spent["budget/session/s"]
    assert prompt + (10 * 3 + 40 * 15) / 1e6 < dollars < prompt + (10 * 3 + 60 * 15) / 1e6


def test_the_session_keeps_its_cache_counts(tmp_path: Path) -> None:
    """The journal has the tokens of a session with what was read from the cache and written to it."""
    journal = rung.journal(tmp_path / "j.db")
    with scripted(whole({**message(TEXT), "usage": CACHED}), journal=journal, **LIMIT) as front:
        spent(front, "/v1/messages", ASKED)
    again = rung.journal(tmp_path / "j.db")
    found = session_usage(again, "s")
    again.close()
    assert found == SessionUsage(1, 53_100, 40, 50_000, 3_000, 2_000)
    assert found.cache_share == pytest.approx(50_000 / 53_100)


def test_a_summary_is_paid_by_the_call_that_needs_it(tmp_path: Path) -> None:
    """The incident of a call has the cost of the summary that its history got; there is no other incident."""
    told: list[Any] = [*ASK]
    for number in range(10):
        told += [
            {"role": "assistant", "content": f"{number} " * 600},
            {"role": "user", "content": f"go on, count to 40 as apple {number}"},
        ]
    rules = [{"fault": "overflow", "window": 1_500, "model": "small"}]
    prices = {"small": OPUS, "cheap": {"input": 1_000.0, "output": 1_000.0}}
    journal = rung.journal(tmp_path / "j.db")
    with Behind(rules, journal=journal, summary_model="cheap", prices=prices) as behind:
        assert messages(behind.claude(), stream=False, messages=told).text == WHOLE
        wait_until(lambda: behind.gateway.active_requests == 0)
        assert journal.flush()
        ((status, dollars),) = journal.read("SELECT status, dollars FROM incident")
    assert status == "recovered"
    assert dollars > 1.0  # of a thousand tokens and more


def test_tiers_of_the_settings_differ() -> None:
    """Two tiers with one threshold are refused: nobody could say which holds."""
    tier = {"above": 5, "input": 1.0, "output": 1.0}
    table = {"prices": {"m": {"input": 1.0, "output": 1.0, "tiers": [tier, tier]}}}
    with pytest.raises(ConfigError, match=r"gateway\.prices\.m\.tiers"):
        settings_from(table, parse_policy_file({}))


OUTAGE: Any = [{"fault": "overloaded", "model": "small"}]


@pytest.mark.parametrize(
    ("own", "fallback", "back"),
    [(OPUS, SONNET, False), (SONNET, OPUS, True)],
    ids=["the fallback is cheaper", "the fallback costs more"],
)
def test_a_session_weighs_its_cold_cache(*, own: Any, fallback: Any, back: bool) -> None:
    """When its own model works again, a session with a long cached prompt stays on a fallback that costs less."""
    policy = {"models": ["small", "large"], "escalate_after": 0}
    with Behind(OUTAGE, policy=policy, prices={"small": own, "large": fallback}, probe_seconds=0) as behind:
        for name in ("long", "short"):
            ask(behind, name)
        behind.gateway.ledger.averages.add("long", Usage(input=500, cache_read=150_000, cache_write=2_000))
        behind.lab.use([])
        ask(behind, "short")  # the probe: it has no cache to lose
        behind.gateway.route_probe.seconds = NEVER
        ask(behind, "long")
        assert [call.model for call in behind.lab.calls][-2:] == ["small", "small" if back else "large"]


def ask(behind: Behind, session: str) -> None:
    assert messages(behind.claude(default_headers={"x-rung-session": session}), stream=False).text == WHOLE
