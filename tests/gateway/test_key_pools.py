"""Pools of keys: the next key is used at once, a failed one rests, and the ladder decides only when none is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import ConfigError
from rung.core.policy.key_pool import KeyState
from rung.gateway.gateway import Gateway
from rung.gateway.settings import settings_from
from tests.gateway.pooled import BROKEN, EMPTY, KEYS, LIMITED, OK, REFUSED, SHORTLY, ask, asked, key_of, pool
from tests.gateway.scripted import Scripted, chat_stream, message, refused, whole
from tests.security.upstream.raw_upstream import RawUpstream

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("failure", [LIMITED, EMPTY, REFUSED], ids=["limited", "exhausted", "dead"])
def test_the_next_key_at_once(failure: bytes, stream: bool, tmp_path: Path) -> None:
    """A call whose key is limited, empty or refused is answered at once with the next key, and both attempts are journaled."""
    good = chat_stream("fine") if stream else OK
    first: list[str] = []

    def answer(key: str) -> bytes:
        first.append(key)
        return failure if key == first[0] else good

    journal = rung.journal(tmp_path / "j.db")  # its gateway closes it
    with pool(answer, journal=journal) as front:
        got = ask(front, stream=stream)
        assert (got.status_code, "fine" in got.text) == (200, True)
        assert got.headers["x-rung-attempts"] == "2"
        assert len(set(first)) == 2
        for number in range(4):
            assert ask(front, f"other {number}", stream=stream).status_code == 200
        assert first.count(first[0]) == 1
        assert journal.flush()
        written = str([event for (name,) in journal.read("SELECT id FROM incident") for event in journal.events(name)])
    assert first[0] in written
    assert not any(value in written for value in KEYS.values())


def test_conversations_are_spread_and_stay() -> None:
    """Conversations take the keys in turn, and each stays on its own."""
    with pool(lambda _: OK) as front:
        for _ in range(2):
            for number in range(3):
                assert ask(front, f"talk {number}").status_code == 200
        keys = asked(front)
        assert sorted(keys[:3]) == ["A", "B", "C"]
        assert keys[3:] == keys[:3]


def test_a_rate_limit_is_one_of_the_model() -> None:
    """A key that is limited for one model serves another."""
    limited = [LIMITED]
    with pool(lambda key: limited.pop() if limited and key == "KEY_B" else OK, "AB") as front:
        assert ask(front).status_code == 200
        assert asked(front) == "BA"
        now = front.gateway.clock.now()
        keys = front.gateway.upstream_table.key_pool(front.gateway.settings.upstreams[0])
        assert keys.statuses("small", now)["KEY_B"].state is KeyState.LIMITED
        assert keys.statuses("large", now)["KEY_B"].state is KeyState.USABLE


def test_the_circuit_stays_closed_for_the_other_keys() -> None:
    """However many calls meet a limited key, the circuit of the model stays closed while another key works."""
    with pool(lambda key: LIMITED if key == "KEY_B" else OK, "AB") as front:
        for number in range(40):
            front.gateway.upstream_table.key_pools.clear()  # as if the limit had reopened
            assert ask(front, f"talk {number}").status_code == 200
        assert len(front.upstream.requests) > 40
        assert [breaker.circuit for _, breaker in front.gateway.breakers.items()] == ["closed"]


def test_none_is_left() -> None:
    """If no key is usable, the ladder waits for the one that reopens first, and not for the one that failed last."""
    seen: list[str] = []

    def answer(key: str) -> bytes:
        seen.append(key)
        return OK if len(seen) > 2 else SHORTLY if len(seen) == 1 else REFUSED

    with pool(answer, "AB") as front:
        got = ask(front)
        assert got.status_code == 200
        assert got.headers["x-rung-attempts"] == "3"
        assert seen[2] == seen[0] != seen[1]


def test_the_error_when_all_are_refused() -> None:
    """If every key is refused, the client gets the provider's error after one attempt with each."""
    with pool(lambda _: REFUSED) as front:
        got = ask(front)
        assert (got.status_code, "Incorrect API key" in got.text) == (401, True)
        assert sorted(asked(front)) == ["A", "B", "C"]


def test_the_budget_of_attempts() -> None:
    """Attempts with other keys count for the budget of attempts."""
    with pool(lambda _: REFUSED, policy={"attempts": 2}) as front:
        assert ask(front).status_code == 401
        assert len(front.upstream.requests) == 2


def test_other_failures_stay_on_the_key() -> None:
    """A failure that is not about the key is retried by the ladder, on the same key."""
    answers = [BROKEN, OK]
    with pool(lambda _: answers.pop(0)) as front:
        assert ask(front).status_code == 200
        keys = front.gateway.upstream_table.key_pool(front.gateway.settings.upstreams[0])
        assert all(status.state is KeyState.USABLE for status in keys.statuses("small", 0.0).values())


def test_refused_keys_after_a_reload() -> None:
    """A refused key is tried again after the settings are reloaded; a limited one still rests."""
    with pool(lambda key: REFUSED if key == "KEY_B" else OK, "AB") as front:
        assert ask(front).status_code == 200
        keys = front.gateway.upstream_table.key_pool(front.gateway.settings.upstreams[0])
        assert keys.overall("KEY_B", 0.0).state is KeyState.DEAD
        assert front.served.reload_settings(front.settings)
        again = front.gateway.upstream_table.key_pool(front.gateway.settings.upstreams[0])
        assert again.overall("KEY_B", 0.0).state is KeyState.USABLE


def test_no_key_comes_back() -> None:
    """Whichever key an upstream echoes in its error, the client does not see it."""
    echo = lambda key: refused("400 Bad Request", {"message": f"bad header {KEYS[key]}"})  # noqa: E731
    with pool(echo) as front:
        for number in range(3):
            got = ask(front, f"talk {number}")
            assert "sk-pool-" not in got.text
        assert set(asked(front)) == set("ABC")


def test_a_stored_conversation_stays_on_its_key() -> None:
    """A request that refers to a stored response is not sent with another key: only the first account has it."""
    with pool(lambda _: LIMITED, policy={"retries": 0}) as front, front.http() as client:
        body = {"model": "small", "input": "more", "previous_response_id": "resp_1"}
        assert client.post("/v1/responses", json=body).status_code == 429
        assert len(front.upstream.requests) == 1


def test_translated_calls_use_the_pool() -> None:
    """A client of another API is served with the keys of the pool, too."""
    answer = whole(message({"type": "text", "text": "fine"}))
    limited = [REFUSED]
    with RawUpstream(lambda _: limited.pop() if limited else answer, close=True) as upstream:
        row = {"wire": "anthropic", "url": upstream.url, "key_envs": ["KEY_A", "KEY_B"]}
        with Scripted(upstreams={"main": row}, policy={"models": ["main/claude-x"]}) as front:
            got = ask(front)
            assert (got.status_code, "fine" in got.text) == (200, True)
            assert {key_of(request) for request in upstream.requests} == {"KEY_A", "KEY_B"}


def test_requests_beside_model_calls_have_a_key() -> None:
    """A request that is only forwarded carries a key of the pool."""
    with pool(lambda _: whole({"object": "list", "data": []})) as front, front.http() as client:
        for path in ("/v1/models", "/v1/files"):
            assert client.get(path).status_code == 200
        assert all(key_of(request) for request in front.upstream.requests)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"key_envs": ["KEY_A"], "key_env": "KEY_B"}, "key_env"),
        ({"key_envs": ["KEY_A", "KEY_A"]}, "different"),
        ({"key_envs": ["KEY_A", "NOT_SET"]}, "NOT_SET"),
    ],
)
def test_settings_that_cannot_be(row: dict[str, Any], words: str) -> None:
    """Both settings together, a name twice, and a variable that is not set are errors at start without a key in them."""
    table = {"upstreams": {"x": {"wire": "openai", "url": "http://127.0.0.1:9", **row}}}
    with pytest.raises(ConfigError, match=words) as caught:
        Gateway(settings_from(table))
    assert caught.value.key == "gateway.upstreams.x.key_envs"
    assert os.environ["KEY_A"] not in str(caught.value)
