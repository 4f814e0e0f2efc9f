"""Answers of the Chat Completions API: finish reasons, usage, and whole answers in both directions."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import chat_usage
from rung.wires.translation.answer import Answer, Stop, Usage, WrittenAnswer
from rung.wires.translation.chat_content import form_of
from rung.wires.translation.chat_content_writer import ChatContentWriter, join_text
from rung.wires.translation.chat_history_reader import read_output
from rung.wires.translation.chat_history_writer import short_id, split_output
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
)
from rung.wires.wire_json import int_or_zero, object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wires.translation.answer import AnswerPart
    from rung.wires.translation.conversation import Conversation

Json = dict[str, Any]

# Reasons of OpenAI, and of servers with a compatible API. Their case does not matter. All others are UNKNOWN.
STOPS: Final[Mapping[str, Stop]] = {
    "stop": Stop.END, "end_turn": Stop.END, "completed": Stop.END, "eos": Stop.END, "eos_token": Stop.END,
    "end": Stop.END, "done": Stop.END,
    "stop_sequence": Stop.STOP_SEQUENCE, "stop_str": Stop.STOP_SEQUENCE,
    "length": Stop.MAX_TOKENS, "max_tokens": Stop.MAX_TOKENS, "max_output_tokens": Stop.MAX_TOKENS,
    "model_length": Stop.CONTEXT_WINDOW,
    "tool_calls": Stop.TOOL_CALLS, "function_call": Stop.TOOL_CALLS, "tool_use": Stop.TOOL_CALLS,
    "tool_call": Stop.TOOL_CALLS,
    "content_filter": Stop.REFUSAL, "safety": Stop.REFUSAL, "refusal": Stop.REFUSAL, "sensitive": Stop.REFUSAL,
    "malformed_function_call": Stop.MALFORMED_CALL,
}  # fmt: skip

FINISH_REASONS: Final[Mapping[Stop, str]] = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.MAX_TOKENS: "length",
    Stop.STOP_SEQUENCE: "stop",  # the wire does not tell them apart
    Stop.REFUSAL: "content_filter",
    Stop.PAUSE: "length",  # the only reason by which a client learns that the answer is not complete
    Stop.CONTEXT_WINDOW: "length",
    Stop.MALFORMED_CALL: "stop",  # there is no call that a client could run
    Stop.UNKNOWN: "stop",  # the provider says that it has finished
}
_ENDS: Final = frozenset({Stop.END, Stop.UNKNOWN, Stop.STOP_SEQUENCE})


def read_answer(body: Mapping[str, Any]) -> Answer:
    """Read an answer. Only its first choice is read: the other wires have one."""
    choices = object_list(body, "choices")
    choice = choices[0] if choices else {}
    message = object_field(choice, "message")
    answer_id = str(body.get("id") or "")
    parts, _ = read_output(message, derived_call_id(answer_id, 0))
    answer_parts = [part for part in parts if isinstance(part, _ANSWER_PARTS)]
    stop, sequence = read_stop(choice, answer_parts)
    return Answer(
        family=Family.CHAT,
        id=answer_id,
        model=str(body.get("model") or ""),
        parts=tuple(_with_ids(answer_parts, answer_id)),
        stop=stop,
        stop_sequence=sequence,
        usage=chat_usage(object_field(body, "usage")),
        created=int_or_zero(body.get("created")),
        extras={name: value for name, value in body.items() if name not in _KNOWN and value is not None},
    )


_KNOWN: Final = frozenset({"id", "object", "model", "created", "choices", "usage"})
_ANSWER_PARTS: Final = (TextPart, RefusalPart, MediaPart, ToolCallPart, ReasoningPart, ForeignPart)


def derived_call_id(answer_id: str, index: int) -> str:
    """Return the id of a call that its server gives none of its own: unique in a conversation, and the same each time."""
    return "call_" + hashlib.sha256(f"{answer_id}:{index}".encode("utf-8", "replace")).hexdigest()[:24]


def _with_ids(parts: Sequence[AnswerPart], answer_id: str) -> list[AnswerPart]:
    """Return the parts, with an id of its own for each call. Some servers send none, or the same one for all."""
    with_ids: list[AnswerPart] = []
    used = {""}
    for index, part in enumerate(parts):
        if isinstance(part, ToolCallPart):
            call_id = derived_call_id(answer_id, index) if part.id in used else part.id
            used.add(call_id)
            with_ids.append(replace(part, id=call_id) if call_id != part.id else part)
        else:
            with_ids.append(part)
    return with_ids


def read_stop(choice: Mapping[str, Any], parts: Sequence[AnswerPart]) -> tuple[Stop, str]:
    """Return why an answer ended, and the stop sequence, which vLLM tells.

    Calls and refusals count for more than the reason: Gemini's endpoint ends calls by "stop", and so does OpenAI refusals.
    """
    stop = STOPS.get(str(choice.get("finish_reason")).lower(), Stop.UNKNOWN)
    sequence = choice.get("stop_reason")
    if stop not in _ENDS:
        return stop, ""
    if any(isinstance(part, ToolCallPart) for part in parts):
        return Stop.TOOL_CALLS, ""
    if any(isinstance(part, RefusalPart) for part in parts):
        return Stop.REFUSAL, ""
    is_matched = isinstance(sequence, str) and stop is Stop.END and sequence.lower() not in STOPS
    return (Stop.STOP_SEQUENCE, str(sequence)) if is_matched else (stop, "")


def write_usage(usage: Usage) -> Json:
    """Return the usage object."""
    details = {"cached_tokens": usage.cache_read}
    if usage.cache_write:
        details["cache_write_tokens"] = usage.cache_write
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def uses_functions(conversation: Conversation) -> bool:
    """Return whether a client uses the legacy functions, whose answers have a `function_call`."""
    return form_of(conversation.extras).get("functions") is not None


def finish_reason(stop: Stop, *, has_calls: bool, has_refusal: bool, is_legacy: bool) -> str:
    """Return the finish reason. Clients run tools by this reason alone, so it must agree with the calls.

    A refusal in words is a regular answer, as OpenAI's own. Only an answer that a filter ended without words has the
    reason content_filter, for which the stream helper of OpenAI's SDK raises an error.
    """
    if has_calls and stop in _ENDS | {Stop.TOOL_CALLS}:
        return "function_call" if is_legacy else "tool_calls"
    if stop is Stop.TOOL_CALLS or (stop is Stop.REFUSAL and has_refusal):
        return "stop"
    return FINISH_REASONS[stop]


def write_answer(answer: Answer, conversation: Conversation) -> WrittenAnswer:
    """Write an answer for the client that sent the conversation."""
    is_legacy = uses_functions(conversation)
    writer = ChatContentWriter(is_own=False)
    message = _write_message(answer.parts, writer, is_legacy=is_legacy)
    has_calls = bool(message.get("tool_calls") or message.get("function_call"))
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(
            answer.stop, has_calls=has_calls, has_refusal=bool(message["refusal"]), is_legacy=is_legacy
        ),
    }
    body = {
        **(answer.extras if answer.family is Family.CHAT else {}),
        "id": answer.id,
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [choice],
        "usage": write_usage(answer.usage),
    }
    return WrittenAnswer(body=body, dropped=tuple(sorted(writer.dropped)))


def _write_message(parts: Sequence[AnswerPart], writer: ChatContentWriter, *, is_legacy: bool) -> Json:
    fields, calls, content = split_output([_for_clients(part) for part in parts])
    message: Json = {"role": "assistant", "content": join_text(parts) or None, "refusal": None, **fields}
    for part in content:
        if isinstance(part, MediaPart):
            writer.dropped.add(part.kind)
        else:
            writer.item(part)  # which names what is lost
    functions = [call["function"] for call in calls if call.get("type") == "function"]
    if functions and is_legacy:
        message["function_call"] = functions[0]
        writer.dropped |= {"parallel_tool_calls"} if len(calls) > 1 else set()
    elif calls:
        message["tool_calls"] = calls
    return message


def _for_clients(part: AnswerPart) -> AnswerPart:
    """Return a call with an object as its arguments, which strict clients parse, and an id that OpenAI takes back."""
    if not isinstance(part, ToolCallPart):
        return part
    return replace(part, id=short_id(part.id), arguments=part.arguments or "{}")
