"""Requests of other wires, adapted to the rules of Anthropic's Messages API. What it cannot say is named as dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.anthropic_messages import name_extras, write_messages
from rung.wires.translation.anthropic_options import write_tool, write_tool_choice
from rung.wires.translation.anthropic_schema import supported_schema, without_identity
from rung.wires.translation.anthropic_thinking import thinking_budget
from rung.wires.translation.conversation import Family, ProviderTool, ToolDefinition, WrittenRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.conversation import Conversation, Sampling

Fields = dict[str, Any]
_OWN: Final = Family.ANTHROPIC
# The API demands a limit. Every model since Claude 4 takes this one, and tokens that are not used cost nothing; a lower
# limit would cut off answers that other providers give whole.
DEFAULT_MAX_TOKENS: Final = 32_000
_MAX_USER_ID: Final = 256  # characters
_JSON_INSTRUCTION: Final = "Answer with one valid JSON object and nothing else: no prose, no code fence."
# OpenAI and Gemini cache automatically. This API caches only up to a breakpoint, so without one a client that never had
# to ask for caching would pay the full price of its whole history in each turn.
_CACHE: Final = {"type": "ephemeral"}


def adapt_request(conversation: Conversation) -> WrittenRequest:
    """Write the request of another family."""
    dropped: set[str] = set()
    name_extras(conversation.extras, conversation.family, dropped)
    messages = write_messages(conversation.turns, dropped)
    tools = _write_tools(conversation, messages, dropped)
    limit = max(conversation.sampling.max_tokens or 0, 0) or DEFAULT_MAX_TOKENS
    body: Fields = {"model": conversation.model, "max_tokens": limit}
    body |= _write_output(conversation, dropped)
    system = _write_system(conversation, dropped)
    if system:
        body["system"] = _with_breakpoint(system)
    if tools:
        # A breakpoint in the system prompt includes the tools, which the model reads before it.
        body["tools"] = tools if system else _with_breakpoint(tools)
        body |= _write_tool_choice(conversation, dropped)
    messages[-1]["content"] = _with_breakpoint(messages[-1]["content"])
    body["messages"] = messages
    budget = thinking_budget(conversation, messages, limit, dropped)
    if budget:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    body |= _write_sampling(conversation.sampling, is_thinking=budget > 0, dropped=dropped)
    body |= _write_user(conversation.user, dropped)
    if conversation.is_stream:
        body["stream"] = True
    return WrittenRequest(body=body, dropped=tuple(sorted(dropped)))


def _with_breakpoint(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": _CACHE}]


def _write_system(conversation: Conversation, dropped: set[str]) -> list[Fields]:
    for part in conversation.system:
        name_extras(part.extras, part.family, dropped)
    blocks = [{"type": "text", "text": part.text} for part in conversation.system if part.text.strip()]
    if conversation.output is not None and conversation.output.schema is None:
        dropped.add("json_object")
        blocks.append({"type": "text", "text": _JSON_INSTRUCTION})
    return blocks


def _write_output(conversation: Conversation, dropped: set[str]) -> Fields:
    """Write the schema of the output. The API has no name or description for it."""
    if conversation.output is None or conversation.output.schema is None:
        return {}
    asked = without_identity(conversation.output.schema)
    schema = supported_schema(asked)
    if schema != asked:
        dropped.add("schema_keywords")
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


# -- tools ---------------------------------------------------------------------------------------------------------------


def _write_tools(conversation: Conversation, messages: Sequence[Fields], dropped: set[str]) -> list[Mapping[str, Any]]:
    chosen = conversation.tool_choice.names
    tools: list[Mapping[str, Any]] = []
    names: set[str] = set()  # the API rejects two tools of one name
    for tool in conversation.tools:
        if isinstance(tool, ProviderTool):
            if tool.family is _OWN:
                tools.append(write_tool(tool))
            else:
                dropped.add(tool.kind)
        elif tool.name in names:
            dropped.add("duplicate_tool")
        elif len(chosen) <= 1 or tool.name in chosen:  # a choice of several tools: the model gets only these
            names.add(tool.name)
            tools.append(_write_definition(tool, dropped))
    return tools or _called_tools(messages)


def _write_definition(tool: ToolDefinition, dropped: set[str]) -> Mapping[str, Any]:
    name_extras(tool.extras, tool.family, dropped)
    schema = {**without_identity(tool.schema), "type": "object"}
    fields: Fields = {"name": tool.name, "input_schema": schema}
    if tool.description:
        fields["description"] = tool.description
    if tool.strict:
        # The API rejects a strict tool whose schema has limits. The model follows them in a tool that is not strict.
        if supported_schema(schema) == schema:
            fields["strict"] = True
        else:
            dropped.add("strict")
    return fields


def _called_tools(messages: Sequence[Fields]) -> list[Mapping[str, Any]]:
    """Define the tools of earlier calls: the API rejects a history with calls in a request without tools."""
    blocks = (block for message in messages for block in message["content"])
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _write_tool_choice(conversation: Conversation, dropped: set[str]) -> Fields:
    if not any(isinstance(tool, ToolDefinition) or tool.family is _OWN for tool in conversation.tools):
        return {"tool_choice": {"type": "none"}}  # the tools are only those of earlier calls
    choice = write_tool_choice(conversation.tool_choice)
    if choice is None:
        return {}
    if choice["type"] == "none":
        choice.pop("disable_parallel_tool_use", None)
    known = {tool.name for tool in conversation.tools if isinstance(tool, ToolDefinition)}
    if choice["type"] == "tool" and choice["name"] not in known:
        dropped.add("tool_choice")
        choice = {"type": "any"}
    return {"tool_choice": choice}


# -- sampling ------------------------------------------------------------------------------------------------------------


def _write_sampling(sampling: Sampling, *, is_thinking: bool, dropped: set[str]) -> Fields:
    fields: Fields = {
        "temperature": None if sampling.temperature is None else min(max(sampling.temperature, 0), 1),
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": [each for each in sampling.stop if each.strip()] or None,
    }
    if fields["temperature"] != sampling.temperature:
        dropped.add("temperature")
    if len(fields["stop_sequences"] or ()) != len(sampling.stop):
        dropped.add("stop")  # the API rejects blank stop sequences
    _leave_out_rejected(fields, is_thinking=is_thinking, dropped=dropped)
    others = {
        "seed": sampling.seed is not None,
        "presence_penalty": bool(sampling.presence_penalty),
        "frequency_penalty": bool(sampling.frequency_penalty),
        "n": sampling.choices > 1,
    }
    dropped.update(name for name, is_set in others.items() if is_set)
    return {name: value for name, value in fields.items() if value is not None}


def _leave_out_rejected(fields: Fields, *, is_thinking: bool, dropped: set[str]) -> None:
    """Leave out what the API rejects: sampling with thinking, and `top_p` with `temperature`. 1 is the default of both."""
    rejected = ["temperature", "top_p", "top_k"] if is_thinking else []
    if fields["temperature"] is not None:
        rejected.append("top_p")
    for name in rejected:
        if fields[name] not in (None, 1):
            dropped.add(name)
        fields[name] = None


def _write_user(user: str, dropped: set[str]) -> Fields:
    """Write the user's id. The API rejects addresses and telephone numbers in it."""
    if not user:
        return {}
    if len(user) > _MAX_USER_ID or "@" in user or not any(character.isalpha() for character in user):
        dropped.add("user")
        return {}
    return {"metadata": {"user_id": user}}
