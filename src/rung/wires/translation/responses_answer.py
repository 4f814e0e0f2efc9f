"""Whole answers of OpenAI's Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import responses_usage
from rung.wires.translation.answer import Answer, Stop, WrittenAnswer
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.translation.dropped_names import name_answer_extras, name_extras
from rung.wires.translation.responses_client_tools import NO_ARGUMENTS
from rung.wires.translation.responses_items import read_item
from rung.wires.translation.responses_output import (
    call_item,
    item_base,
    message_item,
    output_status,
    refusal_part,
    response_object,
    text_part,
)
from rung.wires.translation.responses_tools import ReadTools
from rung.wires.wire_json import is_tool_arguments, object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.answer import AnswerPart
    from rung.wires.translation.conversation import Conversation

Item = dict[str, Any]

_INCOMPLETE_STOPS: Final = {"max_output_tokens": Stop.MAX_TOKENS, "content_filter": Stop.REFUSAL}
_NO_TOOLS: Final = ReadTools()


def read_answer(body: Mapping[str, Any]) -> Answer:
    """Read a whole response. Fields that only repeat the request are not kept."""
    parts: list[AnswerPart] = []
    for item in object_list(body, "output"):
        found = read_item(item, _NO_TOOLS, {})[1]
        parts += [_as_answer_part(part, item) for part in found]
    return Answer(
        family=Family.RESPONSES,
        id=str(body.get("id") or ""),
        model=str(body.get("model") or ""),
        parts=tuple(parts),
        stop=read_stop(
            body,
            has_calls=any(isinstance(part, ToolCallPart) for part in parts),
            has_refusal=any(isinstance(part, RefusalPart) for part in parts),
        ),
        usage=responses_usage(object_field(body, "usage")),
        created=_seconds(body.get("created_at")),
    )


def _as_answer_part(part: Any, item: Item) -> AnswerPart:
    if isinstance(part, ToolResultPart):  # of a tool that the provider ran
        return ForeignPart(family=Family.RESPONSES, block=item, kind=str(item.get("type")))
    return part  # type: ignore[no-any-return]  # all other parts can be in an answer


def read_stop(body: Mapping[str, Any], *, has_calls: bool, has_refusal: bool) -> Stop:
    """Return why a response ended."""
    status = body.get("status")
    if status == "incomplete":
        reason = object_field(body, "incomplete_details").get("reason")
        return _INCOMPLETE_STOPS.get(str(reason), Stop.UNKNOWN)
    if status not in (None, "completed"):
        return Stop.UNKNOWN
    if has_calls:
        return Stop.TOOL_CALLS
    return Stop.REFUSAL if has_refusal else Stop.END


def _seconds(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def write_answer(answer: Answer, conversation: Conversation) -> WrittenAnswer:
    """Write a whole response to the request of `conversation`, whose fields it repeats."""
    dropped: set[str] = set()
    base = item_base(answer.id)
    output: list[Item] = []
    content: list[Item] = []  # of the message that is open
    for part in answer.parts:
        written = _write_content(part, dropped)
        if written is not None:
            content.append(written)
            continue
        is_cut = answer.stop is Stop.MAX_TOKENS and part is answer.parts[-1]
        item = _write_item(part, f"{base}_{len(output) + bool(content)}", conversation, dropped, is_cut=is_cut)
        if item is not None:
            output += [*_closed(content, base, len(output)), item]
            content = []
    end = output_status(answer.stop, has_refusal=any(isinstance(part, RefusalPart) for part in answer.parts))
    output += _closed(content, base, len(output), end.status)
    if answer.family is not Family.RESPONSES:
        name_answer_extras(answer.extras, dropped)
    if answer.stop is Stop.STOP_SEQUENCE:
        dropped.add("stop_sequence")
    body = response_object(
        conversation,
        name=answer.id,
        model=answer.model,
        created=answer.created,
        output=output,
        end=end,
        usage=answer.usage,
    )
    return WrittenAnswer(body=body, dropped=tuple(sorted(dropped)))


def _closed(content: list[Item], base: str, index: int, status: str = "completed") -> list[Item]:
    return [message_item(f"msg_{base}_{index}", content, status)] if content else []


def _write_content(part: AnswerPart, dropped: set[str]) -> Item | None:
    """Return the content part of a message, or None if the part is no text."""
    if isinstance(part, TextPart):
        if part.family is Family.RESPONSES:
            return text_part(part.text) | dict(part.extras)
        name_extras(part.extras, dropped)
        return text_part(part.text)
    return refusal_part(part.text) if isinstance(part, RefusalPart) else None


def _write_item(
    part: AnswerPart, name: str, conversation: Conversation, dropped: set[str], *, is_cut: bool
) -> Item | None:
    """Return the item of a part, or None if this wire cannot say it. `is_cut`: the output limit ended the part."""
    if isinstance(part, ToolCallPart):
        if part.family is not Family.RESPONSES:
            name_extras(part.extras, dropped)
        arguments = part.arguments or NO_ARGUMENTS
        status = "incomplete" if is_cut and not is_tool_arguments(part.arguments) else "completed"
        return call_item(conversation, name=name, call_id=part.id, tool=part.name, arguments=arguments, status=status)
    if isinstance(part, ReasoningPart | ForeignPart):
        if part.family is Family.RESPONSES:
            return dict(part.block)
        dropped.add(part.kind if isinstance(part, ForeignPart) else "reasoning")
    elif isinstance(part, MediaPart):
        dropped.add(part.kind)
    return None
