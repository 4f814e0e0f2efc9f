"""Parameters that OpenAI's models reject, by their names, and the reasoning efforts that they know.

Only requests of other families are fitted to it: their clients do not know which model answers them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.wires.translation.conversation import ReasoningRequest

# A provider may stand before the name, as in openai/gpt-5. The models gpt-5-chat are none that reason.
_REASONING: Final = re.compile(r"(?:^|[/.])(?:o[1-9](?=-|$)|gpt-(?:[5-9]|\d\d)(?!-chat))", re.IGNORECASE).search
_O_SERIES: Final = re.compile(r"(?:^|[/.])o[1-9](?=-|$)", re.IGNORECASE).search
_WITHOUT_REASONING: Final = re.compile(r"(?:^|[/.])(?:gpt-[34]|gpt-5-chat|chatgpt-)", re.IGNORECASE).search
_WITH_EFFORT_NONE: Final = re.compile(r"(?:^|/)gpt-(?:5\.[1-9]|[6-9]|\d\d)", re.IGNORECASE).search

# Parameters that reasoning models reject with an error, whatever their value (except 1 for the first two).
_FIXED: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "stop")

# Efforts that every reasoning model knows. `minimal`, `xhigh` and `max` are only known to some.
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
_BUDGETS: Final = ((4_096, "low"), (16_384, "medium"))  # tokens below which an effort is enough; above: high


def is_reasoning_model(model: str) -> bool:
    """Return whether a name looks like one of OpenAI's reasoning models: o1, o3, o4-mini, gpt-5 and later."""
    return _REASONING(model) is not None


def limit_name(model: str) -> str:
    """Return the name of the output limit.

    OpenAI's reasoning models reject `max_tokens`. Many servers with a compatible API know nothing else.
    """
    return "max_completion_tokens" if is_reasoning_model(model) else "max_tokens"


def rejected(model: str, name: str, value: object) -> bool:
    """Return whether a model rejects a parameter."""
    if name == "parallel_tool_calls":
        return _O_SERIES(model) is not None
    return name in _FIXED and is_reasoning_model(model) and not (value == 1 and name in ("temperature", "top_p"))


def has_effort(model: str) -> bool:
    """Return whether a model may take a reasoning effort: all but those of OpenAI that do not reason."""
    return _WITHOUT_REASONING(model) is None


def known_effort(effort: str, model: str) -> str:
    """Return an effort that a model knows; empty if the model has none. Models of others get it as it is."""
    if not has_effort(model):
        return ""
    if not is_reasoning_model(model) or effort in ("low", "medium", "high"):
        return effort
    if effort == "none":
        return effort if _WITH_EFFORT_NONE(model) else "low"
    return _EFFORTS.get(effort, effort)


def reasoning_effort(request: ReasoningRequest, model: str) -> tuple[str, bool]:
    """Return the effort to write, and whether the request is lost. An empty effort is the model's default."""
    if request.is_enabled is False or request.effort == "none":
        if _WITH_EFFORT_NONE(model):
            return "none", False
        if not is_reasoning_model(model):  # other models either do not reason, or have no parameter to stop it
            return "", False
        return "low", not request.is_implied
    effort = _EFFORTS.get(request.effort, "")
    if not effort and request.budget_tokens is not None:
        effort = next((name for below, name in _BUDGETS if request.budget_tokens < below), "high")
    is_unknown = bool(request.effort or request.is_enabled) and _WITHOUT_REASONING(model) is not None
    if _WITHOUT_REASONING(model):
        return "", bool(effort) or is_unknown
    return effort, bool(request.effort) and not effort
