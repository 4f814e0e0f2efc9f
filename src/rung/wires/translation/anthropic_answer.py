"""Answers of Anthropic's Messages API: stop reasons, usage and content, read into a neutral answer and written from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import anthropic_usage
from rung.wires.translation.answer import Answer, AnswerPart, Stop, Usage, WrittenAnswer
from rung.wires.translation.anthropic_block_reader import read_block
from rung.wires.translation.anthropic_block_writer import write_block
from rung.wires.translation.anthropic_media import left_out
from rung.wires.translation.anthropic_messages import CallIds, write_call, write_own, write_text
from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.translation.dropped_names import name_answer_extras
from rung.wires.wire_json import object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import Conversation

_OWN: Final = Family.ANTHROPIC
_FIELDS: Final = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
STOPS: Final = {
    "end_turn": Stop.END,
    "tool_use": Stop.TOOL_CALLS,
    "max_tokens": Stop.MAX_TOKENS,
    "stop_sequence": Stop.STOP_SEQUENCE,
    "refusal": Stop.REFUSAL,
    "pause_turn": Stop.PAUSE,
    "model_context_window_exceeded": Stop.CONTEXT_WINDOW,
}
STOP_REASONS: Final = {stop: reason for reason, stop in STOPS.items()} | {
    # This API has no words for these.
    Stop.MALFORMED_CALL: "end_turn",
    Stop.UNKNOWN: "end_turn",
}


def read_answer(body: Mapping[str, Any]) -> Answer:
    """Read an answer."""
    extras = {name: value for name, value in body.items() if name not in _FIELDS and value is not None}
    stop = str(body.get("stop_reason") or "")
    if stop and stop not in STOPS:
        extras["stop_reason"] = stop
    return Answer(
        family=_OWN,
        id=str(body.get("id") or ""),
        model=str(body.get("model") or ""),
        parts=tuple([_read_part(block) for block in object_list(body, "content")]),
        stop=STOPS.get(stop, Stop.UNKNOWN),
        stop_sequence=str(body.get("stop_sequence") or ""),
        usage=anthropic_usage(object_field(body, "usage")),
        extras=extras or NOTHING,
    )


def _read_part(block: dict[str, Any]) -> AnswerPart:
    part = read_block(block)
    # An answer has no results of the client's tools.
    return ForeignPart(family=_OWN, block=block, kind="tool_result") if isinstance(part, ToolResultPart) else part


def write_answer(answer: Answer, conversation: Conversation) -> WrittenAnswer:  # noqa: ARG001  # the signature of all wires
    """Write an answer. Refusals are text, and reasoning of other families is dropped."""
    dropped: set[str] = set()
    if answer.family is not _OWN:
        name_answer_extras(answer.extras, dropped)
    ids = CallIds(answer.id)
    blocks = [block for part in answer.parts if (block := _write_part(part, ids, dropped)) is not None]
    body: dict[str, Any] = {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": blocks,
        "stop_reason": STOP_REASONS[answer.stop] if answer.family is _OWN else _write_stop_of(answer, dropped),
        "stop_sequence": answer.stop_sequence or None,
        "usage": write_usage(answer.usage),
    }
    if answer.family is _OWN:
        body.update(answer.extras)
    return WrittenAnswer(body=body, dropped=tuple(sorted(dropped)))


def _write_stop_of(answer: Answer, dropped: set[str]) -> str:
    has_calls = any(isinstance(part, ToolCallPart) for part in answer.parts)
    is_refused = any(isinstance(part, RefusalPart) for part in answer.parts)
    return write_stop(answer.stop, has_calls=has_calls, is_refused=is_refused, dropped=dropped)


def _write_part(part: AnswerPart, ids: CallIds, dropped: set[str]) -> Mapping[str, Any] | None:
    if isinstance(part, ReasoningPart | ForeignPart):
        return write_own(part, dropped)
    if not isinstance(part, RefusalPart) and part.family is _OWN:
        return write_block(part)
    if isinstance(part, ToolCallPart):
        return write_call(part, ids.assign(part.id), dropped)
    if isinstance(part, MediaPart):  # answers of this API have no media
        return left_out(part, dropped)
    return write_text(part, dropped)


def write_stop(stop: Stop, *, has_calls: bool, is_refused: bool, dropped: set[str]) -> str:
    """Write the reason why an answer ended. Some providers give no reason of their own for calls and refusals."""
    if is_refused and not has_calls:
        return "refusal"
    if stop in (Stop.END, Stop.UNKNOWN) and has_calls:
        return "tool_use"
    if stop in (Stop.MALFORMED_CALL, Stop.UNKNOWN):
        dropped.add("stop_reason")
    return STOP_REASONS[stop]


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts."""
    fields: dict[str, Any] = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.cache_write:
        fields["cache_creation"] = {
            "ephemeral_5m_input_tokens": max(0, usage.cache_write - usage.cache_write_1h),
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        }
    if usage.reasoning:
        fields["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return fields
