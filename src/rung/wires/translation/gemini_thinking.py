"""How much a Gemini model thinks, for a conversation of another wire."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import ReasoningRequest

MAX_BUDGET: Final = 24_576  # tokens; the largest that all models accept
_MIN_PRO_BUDGET: Final = 128  # Gemini 2.5 Pro cannot stop thinking
_CURRENT: Final = (3, 0)
_FIRST_THINKING: Final = (2, 5)
_GENERATION: Final = re.compile(r"gemini-(\d{1,3})(?:\.(\d{1,3}))?")
_LEVELS: Final[Mapping[str, str]] = {
    "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH", "max": "HIGH",
}  # fmt: skip
# Google's own table for clients of OpenAI's API.
_BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": MAX_BUDGET, "xhigh": MAX_BUDGET, "max": MAX_BUDGET,
}  # fmt: skip


def generation(model: str) -> tuple[int, int]:
    """Return the generation in the name of a model. A name without a number means a current model."""
    found = _GENERATION.search(model)
    return _CURRENT if found is None else (int(found[1]), int(found[2] or 0))


def is_current(model: str) -> bool:
    """Return whether a model is of the third generation or later."""
    return generation(model) >= _CURRENT


def thinking_config(reasoning: ReasoningRequest, model: str, dropped: set[str]) -> dict[str, Any]:
    """Return the thinkingConfig for a model. A level and a budget exclude each other: an effort wins."""
    if generation(model) < _FIRST_THINKING:
        dropped.add("reasoning")
        return {}
    config = _current(reasoning, model) if is_current(model) else _older(reasoning, model)
    return config | ({"includeThoughts": True} if reasoning.is_shown else {})


def _current(reasoning: ReasoningRequest, model: str) -> dict[str, Any]:
    """Gemini 3 and later think at a level, and cannot stop thinking."""
    effort = "minimal" if reasoning.is_enabled is False else reasoning.effort
    level = _LEVELS.get(effort)
    if level is None:
        budget = reasoning.budget_tokens
        return {"thinkingBudget": min(budget, MAX_BUDGET)} if budget is not None and budget > 0 else {}
    if "-pro" in model and level == "MINIMAL":
        level = "LOW"  # the lowest level of these models
    if "gemini-3-pro" in model and level == "MEDIUM":
        level = "HIGH"  # it has two levels only
    return {"thinkingLevel": level}


def _older(reasoning: ReasoningRequest, model: str) -> dict[str, Any]:
    """Gemini 2.5 has a budget of tokens."""
    if reasoning.is_enabled is False:
        return {"thinkingBudget": _MIN_PRO_BUDGET if "-pro" in model else 0}
    budget = _BUDGETS.get(reasoning.effort) or reasoning.budget_tokens
    if budget is not None and budget > 0:
        return {"thinkingBudget": min(budget, MAX_BUDGET)}
    return {"thinkingBudget": -1} if reasoning.is_enabled else {}
