"""Settings of a Messages request for another Claude model, which may not accept those of the former."""

from __future__ import annotations

from typing import Any, Final

from rung.wires.anthropic_turns import without_thinking_settings
from rung.wires.claude_models import ClaudeRules, claude_rules, effort_of_budget
from rung.wires.wire_json import object_field

Body = dict[str, Any]
MIN_BUDGET: Final = 1_024  # thinking tokens; the API rejects less
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_BUDGET_OF_EFFORT: Final = {"low": 2_048, "medium": 8_192, "high": 16_384}
_MAX_BUDGET: Final = 24_576


def fitted_settings(body: Body, model: str) -> Body:
    """Return a request whose settings the model accepts. Models of other providers get the settings as they are."""
    rules = claude_rules(model)
    if not rules.is_claude:
        return body
    fitted = _with_thinking_of(rules, body)
    if not rules.has_sampling:
        fitted = {name: value for name, value in fitted.items() if name not in _SAMPLING}
    choice = object_field(fitted, "tool_choice")
    if not rules.has_forced_calls and choice.get("type") in ("any", "tool"):
        kept = {name: value for name, value in choice.items() if name not in ("type", "name")}
        fitted = {**fitted, "tool_choice": {"type": "auto", **kept}}
    return fitted


def _with_thinking_of(rules: ClaudeRules, body: Body) -> Body:
    thinking = object_field(body, "thinking")
    kind, effort = thinking.get("type"), object_field(body, "output_config").get("effort")
    if kind == "enabled" and not rules.has_thinking_budget:
        if not rules.has_adaptive_thinking:  # a model that does not think
            return _with_effort(without_thinking_settings(body), None)
        budget = thinking.get("budget_tokens")
        effort = effort or (effort_of_budget(budget) if isinstance(budget, int) else None)
        body = {**body, "thinking": {name: value for name, value in thinking.items() if name == "display"}}
        body["thinking"]["type"] = "adaptive"
    elif kind in ("adaptive", "between_tools") and not rules.has_adaptive_thinking:
        body = _with_budget(body, str(effort or "high"), rules)
    elif kind == "between_tools":  # only some of the models know it
        body = without_thinking_settings(body)
    elif kind == "disabled" and not rules.can_disable_thinking:
        body = without_thinking_settings(body)
        effort = "low" if rules.thinks_by_default else effort
    return _with_effort(body, rules.effort(str(effort)) if effort and rules.has_effort else None)


def _with_budget(body: Body, effort: str, rules: ClaudeRules) -> Body:
    """Return the request with a budget that leaves room for the answer; without thinking, if there is no room."""
    limit = body.get("max_tokens")
    budget = min(_BUDGET_OF_EFFORT.get(effort, _MAX_BUDGET), (limit if isinstance(limit, int) else 0) - MIN_BUDGET)
    if budget < MIN_BUDGET or not rules.has_thinking_budget:
        return without_thinking_settings(body)
    return {**body, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _with_effort(body: Body, effort: str | None) -> Body:
    """Return the request with an effort, or without one."""
    config = object_field(body, "output_config")
    if config.get("effort") == effort:
        return body
    left = {name: value for name, value in config.items() if name != "effort"}
    left |= {"effort": effort} if effort else {}
    without = {name: value for name, value in body.items() if name != "output_config"}
    return {**without, "output_config": left} if left else without
