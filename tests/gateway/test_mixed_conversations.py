"""A conversation that two providers have served: names of models, thinking in mid-turn, and the way back to the own one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.behind import ASK, TOOL, Behind
from tests.gateway.test_other_provider import beside

THINKING = {"type": "enabled", "budget_tokens": 20_000}
CLEARING: Any = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]}
NAMED = {"x-rung-session": "one"}
DEAD = [{"fault": "overloaded", "request": "1-4"}]


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "key-of-the-other-provider")


def mid_turn(identity: str, *blocks: dict[str, Any]) -> list[Any]:
    """A conversation whose last message is the result of a tool."""
    call = {"type": "tool_use", "id": identity, "name": "look", "input": {"at": "x"}}
    result = {"type": "tool_result", "tool_use_id": identity, "content": "found"}
    return [*ASK, {"role": "assistant", "content": [*blocks, call]}, {"role": "user", "content": [result]}]


def send(behind: Behind, **more: Any) -> Any:
    request = {"model": "small", "max_tokens": 30_000, "messages": ASK, "tools": [TOOL], **more}
    answer = behind.http().post("/v1/messages", json=request, headers={**NAMED, "x-api-key": "sk-ant-test"})
    assert answer.status_code == 200, answer.text
    return answer


def test_a_bare_name_is_no_model_of_another_api() -> None:
    """Without an upstream of the client's API, the first model that names an upstream serves it, not the client's own."""
    with beside("messages", "chat", alone=True, policy={"models": ["small", "other/large"]}) as (behind, lab):
        send(behind)
        assert [call.model for call in lab.calls] == ["large"]


def test_a_bare_name_stays_with_its_api() -> None:
    """A client whose alias leads to another API falls back to the models of its own API at their own upstream."""
    aliases = [{"name": "best", "model": "other/large"}]
    policy = {"models": ["other/large", "small"]}
    with beside("messages", "chat", aliases=aliases, policy=policy) as (behind, lab):
        lab.use([{"fault": "overloaded"}])
        send(behind, model="best")
        assert {call.model for call in lab.calls} == {"large"}
        assert [call.model for call in behind.lab.calls] == ["small"]


def test_a_translated_request_keeps_its_effort() -> None:
    """In the middle of a turn as at its beginning, the other provider is asked to think as much as the own one."""
    with beside("messages", "chat", DEAD, policy={"models": ["small", "other/gpt-5.1"]}) as (behind, lab):
        thought = {"type": "thinking", "thinking": "so", "signature": "c2lnbmVkIGJ5IHNtYWxs"}
        send(behind, thinking=THINKING, messages=mid_turn("toolu_1", thought))
        assert lab.calls[0].json["reasoning_effort"] == "high"
        assert "so" not in str(lab.calls[0].json["messages"][1])


def test_the_own_provider_continues_a_turn_of_another() -> None:
    """Anthropic rejects thinking in a turn that another provider began, so it is asked without, and the client is told."""
    with beside("messages", "chat") as (behind, _):
        answer = send(behind, thinking=THINKING, context_management=CLEARING, messages=mid_turn("call_1"))
        assert [call.status for call in behind.lab.calls] == [200]
        assert answer.headers["x-rung-dropped"] == "thinking"
        assert behind.lab.calls[0].json["context_management"]["edits"] == CLEARING["edits"][1:]
        again = send(behind, thinking=THINKING)
        assert "thinking" in behind.lab.calls[1].json
        assert "x-rung-dropped" not in again.headers


def test_another_model_of_anthropic_continues_a_turn() -> None:
    """A fallback in the middle of a turn leaves out thinking, and with it the settings that need it."""
    thought = {"type": "thinking", "thinking": "so", "signature": "c2lnbmVkIGJ5IHNtYWxs"}
    rules = [{"fault": "overloaded", "model": "small"}]
    with Behind(rules, policy={"models": ["small", "large"]}) as behind:
        send(behind, thinking=THINKING, context_management=CLEARING, messages=mid_turn("toolu_1", thought))
        assert [call.status for call in behind.lab.calls if call.model != "small"] == [200]


def test_a_turn_that_began_with_thinking_keeps_it() -> None:
    """After a new message of the user, the own provider thinks again, whatever ids are in the history."""
    before = mid_turn("call_1")
    thought = {"type": "thinking", "thinking": "so", "signature": "c2lnbmVkIGJ5IHNtYWxs"}
    messages = [*before, {"role": "assistant", "content": "done"}, *mid_turn("toolu_2", thought)]
    with beside("messages", "chat") as (behind, _):
        answer = send(behind, thinking=THINKING, messages=messages)
        assert behind.lab.calls[0].json["thinking"] == THINKING
        assert "x-rung-dropped" not in answer.headers


def test_a_provider_that_answers_is_back() -> None:
    """A request that the own provider rejects after its outage is repaired there: the outage is over."""
    thought = {"type": "thinking", "thinking": "so", "signature": "of another model"}
    with beside("messages", "chat", DEAD, probe_seconds=0.0) as (behind, lab):
        send(behind)
        assert lab.attempts == 1
        answer = send(behind, messages=mid_turn("toolu_1", thought))
        assert [call.status for call in behind.lab.calls[-2:]] == [400, 200]
        assert lab.attempts == 1
        assert "x-rung-model" not in answer.headers


def test_another_model_gets_settings_that_it_accepts() -> None:
    """A fallback to a newer model of the same API has thinking in its form and no sampling, and the client is told."""
    rules = [{"fault": "overloaded", "model": "claude-sonnet-4-5"}]
    with Behind(rules, policy={"models": ["claude-sonnet-4-5", "claude-sonnet-5-5"]}) as behind:
        answer = send(behind, model="claude-sonnet-4-5", thinking=THINKING, top_k=5)
        sent = behind.lab.calls[-1].json
        assert sent["model"] == "claude-sonnet-5-5"
        assert (sent["thinking"], "top_k" in sent) == ({"type": "adaptive"}, False)
        assert answer.headers["x-rung-dropped"] == "thinking, top_k"


def test_the_own_provider_gets_the_same_bytes_again() -> None:
    """After a hand-over, the own provider gets the client's bytes as they came, so that its prompt cache is still valid."""
    body = (
        b'{ "model":"small", "max_tokens": 3000,  "system":[{"type":"text","text":"h\\u00e9","cache_control":{"type":"ephemeral"}}],'
        b' "messages":[{"role":"user","content":"hi"}] }'
    )
    headers = {
        **NAMED,
        "x-api-key": "sk-ant-test",
        "anthropic-beta": "context-1m-2025-08-07",
        "content-type": "application/json",
    }
    with beside("messages", "chat", DEAD, probe_seconds=0.0) as (behind, lab):
        first = behind.http().post("/v1/messages", content=body, headers=headers)
        assert "anthropic-beta" in first.headers["x-rung-dropped"]
        assert "cache_control" in first.headers["x-rung-dropped"]
        assert (first.status_code, lab.attempts) == (200, 1)
        second = behind.http().post("/v1/messages", content=body, headers=headers)
        assert "x-rung-dropped" not in second.headers
        own = behind.lab.calls[-1]
        assert (own.status, own.body) == (200, body)
        assert own.headers["anthropic-beta"] == "context-1m-2025-08-07"
