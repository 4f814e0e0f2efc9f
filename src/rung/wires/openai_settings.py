"""Settings of a request to OpenAI for another of its models, which may not accept those of the former."""

from __future__ import annotations

from typing import Any, Final

from rung.wires.translation.chat_models import (
    has_effort,
    is_reasoning_model,
    known_effort,
    limit_name,
    rejected,
)
from rung.wires.wire_json import object_field

Body = dict[str, Any]
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_TOKEN_CHOICES: Final = ("logprobs", "top_logprobs", "logit_bias")  # reasoning models reject them
_ENCRYPTED: Final = "reasoning.encrypted_content"


def fitted_chat(body: Body, model: str) -> Body:
    """Return a Chat Completions request whose settings the model accepts."""
    fitted = _without_rejected(body, model)
    effort = fitted.get("reasoning_effort")
    if isinstance(effort, str) and effort != (known := known_effort(effort, model)):
        fitted = {name: value for name, value in fitted.items() if name != "reasoning_effort"}
        fitted |= {"reasoning_effort": known} if known else {}
    limit = next((fitted[name] for name in reversed(_LIMITS) if fitted.get(name) is not None), None)
    if limit is not None and is_reasoning_model(model) and "max_tokens" in fitted:
        fitted = {name: value for name, value in fitted.items() if name not in _LIMITS}
        fitted[limit_name(model)] = limit
    return fitted


def fitted_responses(body: Body, model: str) -> Body:
    """Return a Responses request whose settings the model accepts."""
    fitted = _without_rejected(body, model)
    reasoning = object_field(fitted, "reasoning")
    if reasoning and not has_effort(model):
        fitted = {name: value for name, value in fitted.items() if name != "reasoning"}
        include = fitted.get("include")
        if isinstance(include, list):
            fitted["include"] = [name for name in include if name != _ENCRYPTED]
        return fitted
    effort = reasoning.get("effort")
    if isinstance(effort, str) and effort != (known := known_effort(effort, model)):
        left = {name: value for name, value in reasoning.items() if name != "effort"}
        fitted = {**fitted, "reasoning": {**left, "effort": known} if known else left}
    return fitted


def _without_rejected(body: Body, model: str) -> Body:
    is_reasoning = is_reasoning_model(model)
    return {
        name: value
        for name, value in body.items()
        if not rejected(model, name, value) and not (is_reasoning and name in _TOKEN_CHOICES)
    }
