"""A request for another model of the same API has the settings that this model accepts."""

from __future__ import annotations

from typing import Any

import pytest

from rung.wires import anthropic_body, openai_chat_body, openai_responses_body
from tests.wires.translation.anthropic_rules import MODELS, check_model

ASK = [{"role": "user", "content": "hi"}]
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 20_000}}
CLAUDE_REQUESTS: list[dict[str, Any]] = [
    {**BUDGET, "temperature": 1},
    {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}},
    {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low", "format": {"type": "json_schema"}}},
    {"thinking": {"type": "disabled"}, "temperature": 0.2, "tool_choice": {"type": "any"}},
    {
        "temperature": 0.5,
        "top_k": 5,
        "tool_choice": {"type": "tool", "name": "find", "disable_parallel_tool_use": True},
    },
]


def claude(model: str, **settings: Any) -> dict[str, Any]:
    return anthropic_body.with_model({"model": "claude-x", "max_tokens": 32_000, "messages": ASK, **settings}, model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("settings", CLAUDE_REQUESTS)
def test_every_claude_model_accepts_the_settings_of_another(model: str, settings: dict[str, Any]) -> None:
    """Whatever settings one model takes, the request for another one has none that it rejects."""
    check_model(claude(model, **settings))


def test_thinking_is_kept_in_the_form_of_the_model() -> None:
    """A budget becomes an effort, and an effort a budget that leaves room for the answer."""
    assert claude("claude-opus-5-5", **BUDGET)["thinking"] == {"type": "adaptive"}
    assert claude("claude-opus-5-5", **BUDGET)["output_config"] == {"effort": "high"}
    adaptive = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}
    assert claude("claude-haiku-4-5", **adaptive)["thinking"] == {"type": "enabled", "budget_tokens": 8_192}
    assert "output_config" not in claude("claude-haiku-4-5", **adaptive)
    assert "thinking" not in claude("claude-haiku-4-5", max_tokens=1_500, **adaptive)


def test_models_of_others_get_the_settings_as_they_are() -> None:
    """A server with a compatible API and models of its own decides for itself."""
    settings: dict[str, Any] = {**BUDGET, "top_k": 5}
    assert settings.items() <= claude("glm-5", **settings).items()
    chat = {"model": "a", "messages": ASK, "temperature": 0.2, "max_tokens": 9, "reasoning_effort": "max"}
    assert openai_chat_body.with_model(chat, "llama-4") == {**chat, "model": "llama-4"}


def test_a_reasoning_model_of_openai() -> None:
    """Reasoning models get the output limit by its newer name, and no parameter that they reject."""
    request = {"messages": ASK, "temperature": 0.2, "stop": ["END"], "max_tokens": 9, "logprobs": True, "seed": 1}
    assert openai_chat_body.with_model(request, "gpt-5.1") == {
        "model": "gpt-5.1",
        "messages": ASK,
        "max_completion_tokens": 9,
        "seed": 1,
    }
    response = {"input": "hi", "temperature": 0.2, "top_p": 1}
    assert openai_responses_body.with_model(response, "o3") == {"model": "o3", "input": "hi", "top_p": 1}


def test_a_model_of_openai_that_does_not_reason() -> None:
    """An effort, and the encrypted reasoning that comes with it, is left out for models that do not reason."""
    request = {"messages": ASK, "reasoning_effort": "high"}
    assert openai_chat_body.with_model(request, "gpt-4.1") == {"model": "gpt-4.1", "messages": ASK}
    response = {"input": "hi", "reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content", "x"]}
    assert openai_responses_body.with_model(response, "gpt-4.1") == {
        "model": "gpt-4.1",
        "input": "hi",
        "include": ["x"],
    }


@pytest.mark.parametrize(("effort", "model", "known"), [("xhigh", "o3", "high"), ("none", "o3", "low"), ("none", "gpt-5.1", "none")])  # fmt: skip
def test_an_effort_that_a_model_does_not_know(effort: str, model: str, known: str) -> None:
    """The nearest effort that every reasoning model knows is sent in place of one that only some know."""
    assert (
        openai_chat_body.with_model({"messages": ASK, "reasoning_effort": effort}, model)["reasoning_effort"] == known
    )
    response = {"input": "hi", "reasoning": {"effort": effort, "summary": "auto"}}
    assert openai_responses_body.with_model(response, model)["reasoning"] == {"effort": known, "summary": "auto"}
