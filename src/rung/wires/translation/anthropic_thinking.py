"""Thinking of Anthropic's Messages API for a request of another wire, which asks for an effort or a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.claude_models import claude_rules, effort_of_budget
from rung.wires.translation.conversation import ToolMode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.conversation import Conversation, ReasoningRequest

# Tokens for each effort. `none` asks for no reasoning.
BUDGETS: Final[Mapping[str, int]] = {
    "none": 0,
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 24_576,
}
MIN_BUDGET: Final = 1_024  # the API rejects less
_MIN_ANSWER: Final = 1_024  # tokens that stay for the answer: thinking counts toward max_tokens
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def thinking_fields(
    conversation: Conversation, messages: Sequence[Mapping[str, Any]], limit: int, dropped: set[str]
) -> dict[str, Any]:
    """Return `thinking` and `output_config` as the model takes them: an effort, or a budget for models up to Claude 4.5."""
    rules = claude_rules(conversation.model)
    if not rules.has_adaptive_thinking:
        budget = _thinking_budget(conversation, messages, limit, dropped) if rules.has_thinking_budget else 0
        dropped.update(["reasoning_effort"] if _wanted(conversation.reasoning) and not budget else [])
        return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}
    effort = _wanted_effort(conversation.reasoning)
    if not effort:
        reasoning = conversation.reasoning
        if reasoning is None or reasoning.is_enabled is not False or not rules.thinks_by_default:
            return {}
        dropped.update([] if reasoning.is_implied else ["reasoning_off"])  # the least that these models take
        return {"output_config": {"effort": "low"}}
    fields: dict[str, Any] = {"output_config": {"effort": rules.effort(effort)}}
    is_forced = conversation.tool_choice.mode is ToolMode.REQUIRED and rules.has_forced_calls
    if not is_forced:  # the API rejects a forced call with thinking
        fields["thinking"] = {"type": "adaptive"}
    elif not rules.thinks_by_default:
        dropped.add("reasoning_effort")
    return fields


def _thinking_budget(
    conversation: Conversation, messages: Sequence[Mapping[str, Any]], limit: int, dropped: set[str]
) -> int:
    """Return the tokens for thinking; 0 if the client did not ask for it, or if the API would reject it."""
    wanted = _wanted(conversation.reasoning)
    if not wanted:
        return 0
    budget = min(max(wanted, MIN_BUDGET), limit - _MIN_ANSWER)
    is_forced = conversation.tool_choice.mode is ToolMode.REQUIRED  # the API rejects a forced call with thinking
    if budget < MIN_BUDGET or is_forced or _is_in_turn_without_thinking(messages):
        dropped.add("reasoning_effort")
        return 0
    return budget


def _wanted_effort(reasoning: ReasoningRequest | None) -> str:
    """Return the effort that a client asks for; empty if it asks for none, or leaves it to the model."""
    if reasoning is None or reasoning.is_enabled is False or reasoning.effort == "none":
        return ""
    if reasoning.effort:
        return reasoning.effort
    if reasoning.budget_tokens is not None and reasoning.budget_tokens > 0:
        return effort_of_budget(reasoning.budget_tokens)
    return "medium" if reasoning.is_enabled else ""


def _wanted(reasoning: ReasoningRequest | None) -> int:
    if reasoning is None or reasoning.is_enabled is False:
        return 0
    if reasoning.budget_tokens is not None and reasoning.budget_tokens >= 0:
        return reasoning.budget_tokens
    if reasoning.effort:
        return BUDGETS.get(reasoning.effort, BUDGETS["medium"])
    return BUDGETS["medium"] if reasoning.is_enabled else 0


def _is_in_turn_without_thinking(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the model is in the middle of a turn of calls that began without thinking: the API rejects it there."""
    if len(messages) < 2 or not any(block["type"] == "tool_result" for block in messages[-1]["content"]):  # noqa: PLR2004  # a call and its result
        return False
    return messages[-2]["content"][0]["type"] not in _THINKING
