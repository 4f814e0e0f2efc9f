"""Requests of other wires, adapted to the rules of Anthropic's Messages API. What it cannot say is named as dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.claude_models import claude_rules
from rung.wires.translation.anthropic_messages import name_extras, write_messages
from rung.wires.translation.anthropic_schema import is_recursive, supported_schema, without_identity
from rung.wires.translation.anthropic_thinking import thinking_fields
from rung.wires.translation.anthropic_tools import demanded_call, write_tool_choice, write_tools
from rung.wires.translation.conversation import WrittenRequest
from rung.wires.translation.foreign_request import with_chosen_tools, with_little_reasoning
from rung.wires.wire_json import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.conversation import Conversation

Fields = dict[str, Any]
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
    conversation = with_chosen_tools(with_little_reasoning(conversation))
    name_extras(conversation.extras, conversation.family, dropped)
    messages = write_messages(conversation.turns, dropped)
    tools = write_tools(conversation, messages, dropped)
    limit = max(conversation.sampling.max_tokens or 0, 0) or DEFAULT_MAX_TOKENS
    body: Fields = {"model": conversation.model, "max_tokens": limit}
    body |= _write_output(conversation, dropped)
    system = _write_system(conversation, dropped)
    if system:
        body["system"] = _with_breakpoint(system)
    if tools:
        # A breakpoint in the system prompt includes the tools, which the model reads before it.
        body["tools"] = tools if system else _with_breakpoint(tools)
        body |= write_tool_choice(conversation, dropped)
    messages[-1]["content"] = [*_with_breakpoint(messages[-1]["content"]), *demanded_call(conversation, dropped)]
    body["messages"] = messages
    thinking = thinking_fields(conversation, messages, limit, dropped)
    if "output_config" in thinking:
        body["output_config"] = {**body.get("output_config", {}), **thinking.pop("output_config")}
    body |= thinking
    body |= _write_sampling(conversation, is_thinking="thinking" in thinking, dropped=dropped)
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
    output = conversation.output
    if output is not None and output.schema is None:
        dropped.add("json_object")
        blocks.append({"type": "text", "text": _JSON_INSTRUCTION})
    elif output is not None and output.schema is not None and is_recursive(output.schema):
        dropped.add("json_schema")
        text = f"{_JSON_INSTRUCTION} It must match this JSON schema:\n{to_json(output.schema)}"
        blocks.append({"type": "text", "text": text})
    return blocks


def _write_output(conversation: Conversation, dropped: set[str]) -> Fields:
    """Write the schema of the output. The API has no name or description for it, and rejects a recursive one."""
    if conversation.output is None or conversation.output.schema is None or is_recursive(conversation.output.schema):
        return {}
    asked = without_identity(conversation.output.schema)
    schema = supported_schema(asked)
    if schema != asked:
        dropped.add("schema_keywords")
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


# -- sampling ------------------------------------------------------------------------------------------------------------


def _write_sampling(conversation: Conversation, *, is_thinking: bool, dropped: set[str]) -> Fields:
    sampling = conversation.sampling
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
    has_sampling = claude_rules(conversation.model).has_sampling and not is_thinking
    _leave_out_rejected(fields, has_sampling=has_sampling, dropped=dropped)
    others = {
        "seed": sampling.seed is not None,
        "presence_penalty": bool(sampling.presence_penalty),
        "frequency_penalty": bool(sampling.frequency_penalty),
        "n": sampling.choices > 1,
    }
    dropped.update(name for name, is_set in others.items() if is_set)
    return {name: value for name, value in fields.items() if value is not None}


def _leave_out_rejected(fields: Fields, *, has_sampling: bool, dropped: set[str]) -> None:
    """Leave out what the API rejects: sampling with thinking or by newer models, and `top_p` with `temperature`.

    1 is the default of both.
    """
    rejected = [] if has_sampling else ["temperature", "top_p", "top_k"]
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
