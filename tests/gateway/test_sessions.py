"""Sessions: which requests belong together, how a session comes back from a fallback, and what it may spend."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.behind import ASK, NEVER, WHOLE, WIRES, Behind, ask, chat, messages

GONE: Any = [{"fault": "model_gone", "model": "small"}]
BOTH = {"models": ["small", "large"]}
PROMPT = {"role": "system", "content": "You are the assistant of an application."}
COUNT = "count to 40 as apple"
# How many calls there were before, the session, the text, and the models that are asked.
TURNS: Any = (
    (0, "a", "one", ["small", "large"]),
    (2, "a", "two", ["large"]),
    (3, "b", "two", ["small", "large"]),
)


def models(behind: Behind, since: int = 0) -> list[str]:
    """The models that were asked since this call."""
    return [call.model for call in behind.lab.calls][since:]


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_system_prompt_is_no_session(wire: str) -> None:
    """Two conversations with one system prompt are two sessions: the fallback of one does not move the other."""
    key = "input" if wire == "responses" else "messages"
    with Behind(GONE, policy=BOTH) as behind:
        for before, name in ((0, "first"), (3, "second")):
            told = [PROMPT, {"role": "user", "content": f"{COUNT}, my {name} question"}]
            ask(behind, wire, stream=False, **{key: told})
            assert models(behind, before) == ["small", "large"]
            longer = [*told, {"role": "assistant", "content": "ok"}, {"role": "user", "content": COUNT}]
            ask(behind, wire, stream=False, **{key: longer})
            assert models(behind, before) == ["small", "large", "large"]


def test_a_cache_mark_that_moves_does_not_change_the_session() -> None:
    """A conversation is the same one when its cache marks move, and when its text comes as a block."""
    mark = {"cache_control": {"type": "ephemeral"}}
    with Behind(GONE, policy=BOTH) as behind:
        ask(
            behind,
            "messages",
            stream=False,
            messages=[{"role": "user", "content": [{"type": "text", "text": COUNT, **mark}]}],
        )
        told = [{"role": "user", "content": COUNT}, {"role": "assistant", "content": "ok"}]
        last = {"role": "user", "content": [{"type": "text", "text": COUNT, **mark}]}
        ask(behind, "messages", stream=False, messages=[*told, last])
        assert models(behind) == ["small", "large", "large"]


@pytest.mark.parametrize(
    "headers",
    [{"session-id": "{}"}, {"session_id": "{}"}, {"x-session-affinity": "{}"}, {"x-claude-code-session-id": "{}"}],
    ids=lambda headers: next(iter(headers)),
)
def test_ids_that_agents_send_in_headers(headers: dict[str, str]) -> None:
    """Requests with one id belong together, those with another do not, whatever their conversation."""
    with Behind(GONE, policy=BOTH) as behind:
        for before, session, text, expected in TURNS:
            named = {name: value.format(session) for name, value in headers.items()}
            chat(behind.gpt(default_headers=named), stream=False, messages=[{"role": "user", "content": text}])
            assert models(behind, before) == expected


@pytest.mark.parametrize(
    "user",
    ["user_0f_account__session_{}", json.dumps({"device_id": "d", "session_id": "SESSION"})],
    ids=["marked", "JSON"],
)
def test_ids_that_agents_send_in_bodies(user: str) -> None:
    """Claude Code names its session in the metadata of its requests."""
    with Behind(GONE, policy=BOTH) as behind:
        for before, session, text, expected in TURNS:
            name = user.replace("{}", session) if "{}" in user else user.replace("SESSION", session)
            asked = [{"role": "user", "content": text}]
            messages(behind.claude(), stream=False, messages=asked, metadata={"user_id": name})
            assert models(behind, before) == expected


@pytest.mark.parametrize("wire", WIRES)
def test_a_dead_fallback_goes_back_to_the_first_model(wire: str) -> None:
    """A session on a fallback that is gone is served by its own model, if that one is back."""
    with Behind(GONE, policy=BOTH) as behind:
        ask(behind, wire, stream=False)
        behind.lab.use([{"fault": "model_gone", "model": "large"}])
        assert ask(behind, wire, stream=False).text == WHOLE
        assert ask(behind, wire, stream=True).text == WHOLE
        assert models(behind) == ["large", "small", "small"]


def test_a_fallback_is_not_one_try_for_all() -> None:
    """After a call for which both models were gone, the next call of the session may fall back again."""
    with Behind([{"fault": "model_gone"}], policy=BOTH) as behind:
        with pytest.raises(openai.NotFoundError):
            ask(behind, "chat", stream=False)
        behind.lab.use(GONE)
        for _ in range(3):
            assert ask(behind, "chat", stream=False).text == WHOLE


def test_a_session_comes_back_to_its_own_model() -> None:
    """When its time on the fallback is over, a session is tried on its own model again, and falls back again."""
    with Behind(GONE, policy=BOTH, sticky_seconds=0) as behind:
        ask(behind, "messages", stream=False)
        ask(behind, "messages", stream=False)
        assert models(behind) == ["small", "large"] * 2
        behind.lab.use([])
        ask(behind, "messages", stream=False)
        assert models(behind) == ["small"]


OUTAGE: Any = [{"fault": "overloaded", "model": "small"}]


@pytest.mark.parametrize("outage", [GONE, OUTAGE], ids=["gone", "overloaded"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_probe_brings_all_sessions_back(wire: str, outage: Any) -> None:
    """When a model is back, one request of one session finds out, and the other sessions begin with it again."""
    with Behind(outage, policy={**BOTH, "escalate_after": 0}, probe_seconds=0) as behind:
        for name in "abc":
            ask(behind, wire, stream=False, extra_headers={"x-rung-session": name})
        behind.lab.use([])
        assert ask(behind, wire, stream=True, extra_headers={"x-rung-session": "a"}).text == WHOLE
        behind.gateway.route_probe.seconds = NEVER
        for name in "abc":
            assert ask(behind, wire, stream=True, extra_headers={"x-rung-session": name}).text == WHOLE
        assert models(behind) == ["small"] * 4
        assert 'rung_probes_total{result="succeeded"} 1' in behind.http().get("/metrics").text


def test_a_probe_that_fails_is_served_by_the_fallback() -> None:
    """A request that finds its model still down is served by the fallback, without a retry."""
    with Behind(OUTAGE, policy={**BOTH, "escalate_after": 0}, probe_seconds=0) as behind:
        ask(behind, "chat", stream=True)
        assert ask(behind, "chat", stream=True).text == WHOLE
        assert models(behind) == ["small", "large", "small", "large"]
        assert 'rung_probes_total{result="failed"} 1' in behind.http().get("/metrics").text


def test_a_probe_that_breaks_is_recovered() -> None:
    """A probe whose answer breaks off after its beginning is resumed like any answer, and the session is back."""
    with Behind(GONE, policy=BOTH, probe_seconds=0) as behind:
        ask(behind, "messages", stream=True)
        behind.lab.use([{"fault": "cut", "after": 7, "request": 1}])
        assert ask(behind, "messages", stream=True).text == WHOLE
        assert models(behind) == ["small", "small"]


def test_a_request_that_its_own_model_refuses_ends_the_outage() -> None:
    """A probe that the model refuses as invalid shows that it is back: the error is the client's, not the fallback's."""
    with Behind(GONE, policy=BOTH, probe_seconds=0) as behind:
        ask(behind, "chat", stream=False)
        behind.lab.use([{"fault": "bad_request", "request": 1}])
        with pytest.raises(openai.BadRequestError):
            ask(behind, "chat", stream=False)
        ask(behind, "chat", stream=False)
        assert models(behind) == ["small", "small"]


def test_a_session_that_left_for_another_reason_stays() -> None:
    """A session that left its model because its request is too long for it is not tried there again by a probe."""
    overflow: Any = [{"fault": "overflow", "model": "small", "window": 10}]
    with Behind(overflow, policy={"models": ["small", "large"]}, probe_seconds=0) as behind:
        ask(behind, "chat", stream=False)
        behind.lab.use([])
        ask(behind, "chat", stream=False)
        assert models(behind) == ["large"]


def test_a_budget_holds_without_a_header() -> None:
    """The budget of a session holds for a conversation that no header names; another one has its own."""
    prices = {"small": {"input": 1.0, "output": 1_000.0}}  # 40 tokens out cost 4 cents
    with Behind(budgets={"session": 0.05}, prices=prices) as behind:
        told: list[Any] = list(ASK)
        for _ in range(2):
            messages(behind.claude(), stream=False, messages=told)
            told += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": COUNT}]
        with pytest.raises(anthropic.RateLimitError, match="spend limit"):
            messages(behind.claude(), stream=False, messages=told)
        assert behind.attempts == 2
        messages(behind.claude(), stream=False, messages=[{"role": "user", "content": f"{COUNT}, please"}])
