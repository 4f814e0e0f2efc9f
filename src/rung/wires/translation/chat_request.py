"""Requests of the Chat Completions API.

The reader notes in the form of `extras` each field that the writer would write in another form: a stop sequence that is no
list, a limit that is called max_tokens, a null. So a conversation of this family is written as it came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_content import ChatFields
from rung.wires.translation.chat_content_writer import ChatContentWriter
from rung.wires.translation.chat_history_reader import ABSENT, read_messages
from rung.wires.translation.chat_history_writer import with_form, write_messages
from rung.wires.translation.chat_models import rejected
from rung.wires.translation.chat_parameters import foreign_fields, own_fields, read_reasoning, read_sampling, read_user
from rung.wires.translation.chat_tools import (
    read_choice,
    read_function,
    read_output_format,
    read_tool,
    write_tools,
)
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    ToolChoice,
    WrittenRequest,
)
from rung.wires.translation.foreign_request import consistent, for_openai, with_chosen_tools
from rung.wires.wire_json import object_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import ProviderTool, ToolDefinition

Json = dict[str, Any]

_JSON_INSTRUCTION: Final = "Answer with JSON."
_NO_TEXT: Final = "…"  # OpenAI rejects a request without messages


def read_request(body: Mapping[str, Any]) -> Conversation:
    """Read a request."""
    form: Json = {name: None for name, value in body.items() if value is None}
    messages = body.get("messages")
    if not isinstance(messages, list):
        form["messages"] = body.get("messages", ABSENT)
    system, turns = read_messages(messages if isinstance(messages, list) else [])
    model = body.get("model")
    if not isinstance(model, str):
        form["model"] = body.get("model", ABSENT)
    conversation = Conversation(
        family=Family.CHAT,
        model=model if isinstance(model, str) else "",
        system=system,
        turns=turns,
        tools=_read_tools(body, form),
        tool_choice=_read_choice(body, form),
        output=read_output_format(body.get("response_format")),
        reasoning=read_reasoning(body, form),
        sampling=read_sampling(body, form),
        is_stream=body.get("stream") is True,
        wants_usage=object_field(body, "stream_options").get("include_usage") is True,
        user=read_user(body, form),
    )
    written = own_fields(conversation)
    form |= {name: body[name] for name in _FORMED if name in body and written.get(name) != body[name]}
    lost = (
        {"tool_choice"} if isinstance(body.get("tool_choice"), dict) and not conversation.tool_choice.names else set()
    )
    extras = {name: value for name, value in body.items() if name in lost or (name not in written and name not in form)}
    return replace(conversation, extras=ChatFields(extras, form))


_FORMED: Final = ("stream", "stream_options", "n", "response_format", "tool_choice", "reasoning_effort")


def _read_tools(body: Mapping[str, Any], form: Json) -> tuple[ToolDefinition | ProviderTool, ...]:
    tools, functions = body.get("tools"), body.get("functions")
    if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
        form |= {} if tools else {"tools": tools}
        return tuple([read_tool(tool) for tool in tools])
    if not isinstance(functions, list) or not all(isinstance(function, dict) for function in functions):
        return ()
    form |= {"functions": functions}
    form |= {name: body.get(name, ABSENT) for name in ("tools", "tool_choice", "parallel_tool_calls")}
    named = [function for function in functions if isinstance(function.get("name"), str)]
    return tuple([read_function(function) for function in named])


def _read_choice(body: Mapping[str, Any], form: Json) -> ToolChoice:
    if form.get("functions") is not None:
        choice = body.get("function_call")
        form |= {"function_call": choice} if "function_call" in body else {}
        mode, names = read_choice({"function": choice} if isinstance(choice, dict) else choice)
        return ToolChoice(mode=mode, names=names, parallel=False)  # an answer has room for one call
    mode, names = read_choice(body.get("tool_choice"))
    parallel = body.get("parallel_tool_calls")
    return ToolChoice(mode=mode, names=names, parallel=parallel if isinstance(parallel, bool) else None)


def write_request(conversation: Conversation) -> WrittenRequest:
    """Write a request. One of this family is written as it was read; others as OpenAI's models take them."""
    writer = ChatContentWriter(is_own=conversation.family is Family.CHAT)
    if writer.is_own:
        body = {**conversation.extras} | own_fields(conversation)
        body |= {"messages": write_messages(conversation, writer)}
        body |= {"tools": write_tools(conversation.tools, writer)} if conversation.tools else {}
        body = with_form(body, conversation.extras)
    else:
        body = _foreign_body(conversation, writer)
    return WrittenRequest(body=body, dropped=tuple(sorted(writer.dropped)))


def _foreign_body(conversation: Conversation, writer: ChatContentWriter) -> Json:
    conversation = with_chosen_tools(for_openai(consistent(conversation, writer.dropped), writer.dropped))
    tools = write_tools(conversation.tools, writer)
    messages = write_messages(conversation, writer) or [{"role": "user", "content": _NO_TEXT}]
    body: Json = {"model": conversation.model, "messages": messages}
    body |= {"tools": tools} if tools else {}
    fields = foreign_fields(conversation, writer.dropped, has_tools=bool(tools))
    for name, value in fields.items():
        if rejected(conversation.model, name, value):
            writer.dropped.add(name)
        else:
            body[name] = value
    if body.get("response_format") == {"type": "json_object"}:
        _demand_json(body["messages"])
    writer.note_extras(conversation.extras, conversation.family)
    return body


def _demand_json(messages: list[Any]) -> None:
    """Say in the instructions that the answer is JSON. OpenAI rejects the format json_object if no message says it."""
    if messages and messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        text = messages[0]["content"]
        messages[0]["content"] = text if "json" in text.lower() else f"{text}\n\n{_JSON_INSTRUCTION}"
    else:
        messages.insert(0, {"role": "system", "content": _JSON_INSTRUCTION})
