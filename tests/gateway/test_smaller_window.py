"""A fallback to a model with a smaller context window: it gets a compacted conversation, the own provider never does."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.behind import ASK, Behind
from tests.gateway.test_other_provider import KEY, LONG_TALK, beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.testing.provider import Lab

WINDOW = 8_000
SENT = json.dumps({"model": "small", "max_tokens": 500, "messages": [*LONG_TALK, *ASK]}, indent=1).encode()
HEADERS = {"x-api-key": "sk-test", "content-type": "application/json"}


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", KEY)


def sent(behind: Behind, path: str = "/v1/messages", body: bytes = SENT) -> Any:
    return behind.http().post(path, content=body, headers=HEADERS)


@pytest.mark.parametrize("other", ["chat", "responses", "gemini", "messages"])
def test_a_full_context_of_the_other_provider_is_compacted_for_it(other: str) -> None:
    """If the other provider finds the conversation too long, it gets it compacted, once; the own one the client's bytes."""
    with beside("messages", other, [{"fault": "overloaded"}], policy={"retries": 1}) as (behind, lab):
        lab.use([{"fault": "overflow", "window": WINDOW, "request": 1}])
        response = sent(behind)
        assert (response.status_code, lab.attempts) == (200, 2)
        assert len(lab.calls[1].body) < len(lab.calls[0].body)
        assert "count to 40" in lab.calls[1].body.decode()
        assert "characters" in response.headers["x-rung-compacted"]
        assert {call.body for call in behind.lab.calls} == {SENT}


def test_the_own_provider_gets_the_clients_bytes_when_it_is_back() -> None:
    """After a compacted request failed elsewhere, the own provider is asked with the client's bytes, and nothing is noted."""
    faults = [{"fault": "overloaded", "request": "1-2"}]
    policy = {"retries": 1, "patience": 60}
    with beside("messages", "chat", faults, policy=policy) as (behind, lab):
        lab.use([{"fault": "overflow", "window": WINDOW, "request": 1}, {"fault": "overloaded", "request": "2-99"}])
        response = sent(behind)
        assert response.status_code == 200
        assert lab.attempts > 1
        assert {call.body for call in behind.lab.calls} == {SENT}
        assert "x-rung-compacted" not in response.headers


def test_a_rejected_compaction_ends_with_the_own_providers_error() -> None:
    """If even the compacted conversation is too long for the other provider, the client gets the own provider's error."""
    with beside("messages", "chat", [{"fault": "overloaded"}], policy={"retries": 1}) as (behind, lab):
        lab.use([{"fault": "overflow", "window": 10}])
        response = sent(behind)
        assert (response.status_code, lab.attempts) == (529, 2)
        assert response.json()["error"]["type"] == "overloaded_error"
        assert {call.body for call in behind.lab.calls} == {SENT}


def filler(words: int, turns: int = 40) -> list[dict[str, Any]]:
    return [{"role": role, "content": f"{n} {'word ' * words}"} for n in range(turns) for role in ("user", "assistant")]


def asked(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "small", "max_tokens": 500, "messages": [*messages, *ASK]}).encode()


@contextmanager
def listed_fallback(**model: Any) -> Iterator[tuple[Behind, Lab]]:
    """Run a gateway with a fallback to a model that the price list knows: its context window has 128,000 tokens."""
    models = ["small", {"name": "other/gpt-4o", **model}]
    policy = {"models": models, "retries": 1, "dollars": 1_000}  # a budget waits for the price list
    with beside("messages", "chat", [{"fault": "overloaded"}], policy=policy) as pair:
        yield pair


def test_the_window_of_a_known_model_needs_no_setting() -> None:
    """The price list names the context window of a known model: a longer conversation is compacted before it is sent there."""
    with listed_fallback() as (behind, lab):
        response = sent(behind, body=asked(filler(2_000)))
        assert (response.status_code, lab.attempts) == (200, 1)
        assert len(lab.calls[0].body) < 4 * 128_000
        assert "characters" in response.headers["x-rung-compacted"]


def test_a_setting_overrides_the_list() -> None:
    """A context window in the settings holds in the place of the price list's."""
    with listed_fallback(window=2_000_000) as (behind, lab):
        body = asked(filler(2_000))
        assert sent(behind, body=body).status_code == 200
        assert len(lab.calls[0].body) > 4 * 128_000


def test_an_image_does_not_fill_the_window() -> None:
    """The base64 of an image is not counted as text: a conversation with one goes to the other model as it is."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA" * 100_000}
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "image", "source": source}]},
        {"role": "assistant", "content": "ok"},
    ]
    with listed_fallback() as (behind, lab):
        response = sent(behind, body=asked([*filler(20), *talk, *filler(20)]))
        assert (response.status_code, lab.attempts) == (200, 1)
        assert source["data"] in lab.calls[0].body.decode()
        assert "x-rung-compacted" not in response.headers
