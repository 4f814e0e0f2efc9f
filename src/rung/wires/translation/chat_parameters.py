"""Parameters of a Chat Completions request beside its messages and tools, in both directions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_history_reader import ABSENT
from rung.wires.translation.chat_models import limit_name, reasoning_effort
from rung.wires.translation.chat_tools import write_choice, write_output_format
from rung.wires.translation.conversation import ReasoningRequest, Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import Conversation

Json = dict[str, Any]

MAX_STOP_SEQUENCES: Final = 4
_MAX_USER: Final = 64  # characters; OpenAI rejects longer ids
_NUMBERS: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_INTEGERS: Final = ("seed", "top_k")


def read_reasoning(body: Mapping[str, Any], form: Json) -> ReasoningRequest | None:
    """Read the effort, or the object by which OpenRouter says it."""
    effort, other = body.get("reasoning_effort"), body.get("reasoning")
    if isinstance(effort, str):
        if effort == "none":
            return ReasoningRequest(is_enabled=False)
        return ReasoningRequest(is_enabled=True, effort="max" if effort == "xhigh" else effort)
    if not isinstance(other, dict):
        return None
    form |= {"reasoning": other, "reasoning_effort": body.get("reasoning_effort", ABSENT)}
    effort, budget, is_enabled = other.get("effort"), other.get("max_tokens"), other.get("enabled")
    is_hidden = other.get("exclude")
    return ReasoningRequest(
        is_enabled=is_enabled if isinstance(is_enabled, bool) else effort != "none",
        budget_tokens=budget if isinstance(budget, int) else None,
        effort=effort if isinstance(effort, str) and effort != "none" else "",
        is_shown=not is_hidden if isinstance(is_hidden, bool) else None,
    )


def read_sampling(body: Mapping[str, Any], form: Json) -> Sampling:
    """Read the parameters of the model."""
    values = {name: body[name] for name in _NUMBERS if _is_number(body.get(name))}
    values |= {name: body[name] for name in _INTEGERS if _is_integer(body.get(name))}
    limits = [body[name] for name in ("max_completion_tokens", "max_tokens") if _is_integer(body.get(name))]
    if limits:
        values["max_tokens"] = limits[0]
    if _is_integer(body.get("max_tokens")):
        form |= {name: body.get(name, ABSENT) for name in ("max_tokens", "max_completion_tokens")}
    stop = body.get("stop")
    if isinstance(stop, str):
        form["stop"] = stop
        values["stop"] = (stop,)
    elif isinstance(stop, list) and all(isinstance(text, str) for text in stop):
        form |= {} if stop else {"stop": stop}
        values["stop"] = tuple(stop)
    choices = body.get("n")
    return Sampling(**values, choices=choices if isinstance(choices, int) and choices > 1 else 1)


def read_user(body: Mapping[str, Any], form: Json) -> str:
    """Read the id of the end user."""
    user, safety = body.get("user"), body.get("safety_identifier")
    if isinstance(safety, str):
        form |= {"safety_identifier": safety, "user": body.get("user", ABSENT)}
    found = [value for value in (user, safety) if isinstance(value, str) and value]
    return found[0] if found else ""


def own_fields(conversation: Conversation) -> Json:
    """Return the usual form of all fields; messages and tools only by name."""
    sampling, reasoning = conversation.sampling, conversation.reasoning
    effort = ""
    if reasoning is not None:
        effort = "none" if reasoning.is_enabled is False else reasoning.effort
    fields = {
        "model": conversation.model,
        "messages": [],
        "tools": [] if conversation.tools else None,
        "tool_choice": write_choice(conversation.tool_choice),
        "parallel_tool_calls": conversation.tool_choice.parallel,
        "response_format": write_output_format(conversation.output) if conversation.output is not None else None,
        "reasoning_effort": effort or None,
        "max_completion_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "n": sampling.choices if sampling.choices > 1 else None,
        "user": conversation.user or None,
        "stream": conversation.is_stream or None,
        **{name: getattr(sampling, name) for name in (*_NUMBERS, *_INTEGERS)},
    }
    return {name: value for name, value in fields.items() if value is not None}


def foreign_fields(conversation: Conversation, dropped: set[str], *, has_tools: bool) -> Json:
    """Return the fields of a request of another family, and name what is lost."""
    sampling, reasoning, model = conversation.sampling, conversation.reasoning, conversation.model
    fields = own_fields(conversation)
    for name in ("model", "messages", "tools", "reasoning_effort", "max_completion_tokens"):
        fields.pop(name, None)
    if not has_tools:  # OpenAI rejects both without tools
        fields.pop("tool_choice", None)
    if not has_tools or fields.get("parallel_tool_calls") is True:  # which is the default
        fields.pop("parallel_tool_calls", None)
    if sampling.max_tokens is not None:
        fields[limit_name(model)] = sampling.max_tokens
    if len(sampling.stop) > MAX_STOP_SEQUENCES:
        dropped.add("stop")
        fields["stop"] = list(sampling.stop[:MAX_STOP_SEQUENCES])
    for name in ("top_k", "n"):  # an answer of another wire is one choice
        if fields.pop(name, None) is not None:
            dropped.add(name)
    if reasoning is not None:
        effort, is_lost = reasoning_effort(reasoning, model)
        fields |= {"reasoning_effort": effort} if effort else {}
        dropped |= {"reasoning"} if is_lost else set()
        dropped |= {"reasoning_summary"} if reasoning.is_shown else set()
    if len(conversation.user) > _MAX_USER:
        fields["user"] = "user_" + hashlib.sha256(conversation.user.encode("utf-8", "replace")).hexdigest()[:32]
    if conversation.is_stream:  # the gateway counts the tokens of every answer
        fields["stream_options"] = {"include_usage": True}
    return fields


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
