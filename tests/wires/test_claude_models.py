"""Requests for Claude models have the settings that each model accepts."""

from __future__ import annotations

from typing import Any

import pytest

from rung.wires.translation.anthropic import ANTHROPIC_TRANSLATOR
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ReasoningRequest,
    Sampling,
    Speaker,
    TextPart,
    ToolChoice,
    ToolDefinition,
    ToolMode,
    Turn,
)
from tests.wires.translation.anthropic_rules import MODELS, check

ASKED = (Turn(speaker=Speaker.USER, parts=(TextPart(text="hi"),)),)
FIND = ToolDefinition(name="find", schema={"type": "object"})
CURRENT = "anthropic.claude-sonnet-5-5"


def write(model: str, **fields: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    written = ANTHROPIC_TRANSLATOR.write_request(Conversation(family=Family.CHAT, model=model, turns=ASKED, **fields))
    check(written.body)
    return written.body, written.dropped


@pytest.mark.parametrize(
    ("asked", "effort"),
    [
        (ReasoningRequest(effort="minimal"), "low"),
        (ReasoningRequest(effort="high"), "high"),
        (ReasoningRequest(effort="max"), "xhigh"),
        (ReasoningRequest(is_enabled=True), "medium"),
        (ReasoningRequest(budget_tokens=2_000), "low"),
        (ReasoningRequest(budget_tokens=30_000), "high"),
    ],
)
def test_current_models_get_an_effort(asked: ReasoningRequest, effort: str) -> None:
    """Models from Claude 4.7 on reject a budget of thinking tokens: they get adaptive thinking and an effort."""
    body, dropped = write(CURRENT, reasoning=asked)
    assert body["thinking"] == {"type": "adaptive"}
    assert (body["output_config"], dropped) == ({"effort": effort}, ())


def test_older_models_get_a_budget() -> None:
    """Models up to Claude 4.5 know no adaptive thinking: they get a budget."""
    body, _ = write("claude-sonnet-4-5", reasoning=ReasoningRequest(effort="low"))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2_048}
    assert "output_config" not in body


def test_no_reasoning_is_the_lowest_effort() -> None:
    """A model that always thinks gets the lowest effort if the client wants no reasoning, and the loss is named."""
    off = ReasoningRequest(is_enabled=False)
    assert write(CURRENT, reasoning=off)[0]["output_config"] == {"effort": "low"}
    assert write(CURRENT, reasoning=off)[1] == ("reasoning_off",)
    assert "output_config" not in write("claude-opus-4-7", reasoning=off)[0]


def test_sampling_is_left_out_for_current_models() -> None:
    """Models from Claude 4.7 on reject sampling parameters: they are left out and named."""
    sampling = Sampling(temperature=0.2, top_k=5)
    body, dropped = write(CURRENT, sampling=sampling)
    assert not {"temperature", "top_k"} & set(body)
    assert dropped == ("temperature", "top_k")
    assert write("claude-sonnet-4-5", sampling=sampling)[0]["temperature"] == 0.2


def test_a_forced_call_is_demanded_in_words() -> None:
    """Current models reject a forced call: a text after the last cache breakpoint demands it, and the loss is named."""
    choice = ToolChoice(mode=ToolMode.REQUIRED, names=("find",), parallel=False)
    body, dropped = write(CURRENT, tools=(FIND,), tool_choice=choice)
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    *before, demand = body["messages"][-1]["content"]
    assert "cache_control" in before[-1]
    assert "find" in demand["text"]
    assert "cache_control" not in demand
    assert dropped == ("tool_choice",)
    body, dropped = write("claude-haiku-5-5", tools=(FIND,), tool_choice=choice)
    assert body["tool_choice"] == {"type": "tool", "name": "find", "disable_parallel_tool_use": True}
    assert dropped == ()


@pytest.mark.parametrize("model", MODELS)
def test_every_model_accepts_what_it_gets(model: str) -> None:
    """All settings together give a request that the model accepts."""
    write(
        model,
        tools=(FIND,),
        tool_choice=ToolChoice(mode=ToolMode.REQUIRED),
        reasoning=ReasoningRequest(effort="max"),
        sampling=Sampling(temperature=0.5, top_p=0.5, top_k=5),
    )


def test_a_small_limit_leaves_no_room_for_thinking() -> None:
    """With a small output limit, a model that thinks by default gets the lowest effort, which the client did not ask for."""
    body, dropped = write(CURRENT, sampling=Sampling(max_tokens=300))
    assert (body["output_config"], "thinking" in body, dropped) == ({"effort": "low"}, False, ())
    assert "output_config" not in write(CURRENT, sampling=Sampling(max_tokens=4_000))[0]
    assert "output_config" not in write("claude-sonnet-4-5", sampling=Sampling(max_tokens=300))[0]
