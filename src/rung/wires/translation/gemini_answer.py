"""Answers of Gemini's generateContent, as neutral answers and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import gemini_usage
from rung.wires.translation.answer import Answer, Stop, Usage, WrittenAnswer
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
from rung.wires.translation.dropped_names import name_answer_extras
from rung.wires.translation.gemini_contents import signed_call
from rung.wires.translation.gemini_fields import INVENTED_ID, invented_id, merged, spelled, with_prefix
from rung.wires.translation.gemini_media import written_media
from rung.wires.translation.gemini_parts import object_of, own_part, read_part
from rung.wires.wire_json import object_field, object_list, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.answer import AnswerPart
    from rung.wires.translation.conversation import Conversation, Part

    Body = dict[str, Any]

MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
_STOPS: Final = {
    "STOP": Stop.END,
    "MAX_TOKENS": Stop.MAX_TOKENS,
    "CONTINUATION": Stop.MAX_TOKENS,  # only Google can continue it
    **dict.fromkeys(("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), Stop.REFUSAL),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"), Stop.REFUSAL),
    **dict.fromkeys((MALFORMED, "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"), Stop.MALFORMED_CALL),
}
FINISH_REASONS: Final = {
    Stop.END: "STOP",
    Stop.TOOL_CALLS: "STOP",
    Stop.STOP_SEQUENCE: "STOP",
    Stop.MAX_TOKENS: "MAX_TOKENS",
    Stop.CONTEXT_WINDOW: "MAX_TOKENS",
    Stop.REFUSAL: "SAFETY",
    Stop.MALFORMED_CALL: MALFORMED,
    Stop.PAUSE: "OTHER",
    Stop.UNKNOWN: "OTHER",
}
_COUNTS: Final = (
    "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount",
    "toolUsePromptTokenCount", "totalTokenCount",
)  # fmt: skip


class AnswerCalls:
    """Ids of the calls in one answer. The id of the answer makes them unique in the conversation."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.count = 0
        found = body.get("responseId")
        self._seed = found if isinstance(found, str) and found else to_json(dict(body))

    def call_id(self, call: Mapping[str, Any]) -> str:
        """Return the id of the next call."""
        self.count += 1
        return call.get("id") or invented_id(self._seed, self.count - 1)

    def part(self, raw: Mapping[str, Any]) -> Part:
        """Read a part of the answer."""
        return read_part(raw, self.call_id, _given_id)


def _given_id(result: Mapping[str, Any]) -> str:
    return result.get("id") or INVENTED_ID


# -- reading -------------------------------------------------------------------------------------------------------------


def read_answer(body: Mapping[str, Any]) -> Answer:
    """Read an answer. Only its first candidate is read."""
    fields = dict(spelled(body))
    candidate = first_candidate(fields)
    calls = AnswerCalls(fields)
    content = spelled(object_field(candidate, "content"))
    parts = [as_answer_part(calls.part(item)) for item in object_list(content, "parts")]
    blocked = blocked_text(fields)
    if blocked and not candidate:
        parts = [RefusalPart(text=blocked)]
    reason = candidate.get("finishReason")
    stop = stop_of(reason, has_calls=calls.count > 0, is_blocked=blocked is not None)
    known = ("responseId", "modelVersion", "createTime", "candidates", "usageMetadata")
    usage = spelled(object_field(fields, "usageMetadata"))
    hidden = ("content", "index", "finishReason" if FINISH_REASONS[stop] == reason else "content")
    return Answer(
        family=Family.GEMINI,
        id=_text(fields, "responseId"),
        model=_text(fields, "modelVersion"),
        parts=tuple(parts),
        stop=stop,
        usage=gemini_usage(usage),
        created=_seconds(_text(fields, "createTime")),
        extras={
            **{key: value for key, value in fields.items() if key not in known},
            **with_prefix("candidates", candidate, hidden),
            **with_prefix("usageMetadata", usage, _COUNTS),
        },
    )


def first_candidate(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first candidate of an answer, or an empty object."""
    candidates = object_list(fields, "candidates")
    return spelled(candidates[0]) if candidates else {}


def blocked_text(fields: Mapping[str, Any]) -> str | None:
    """Return the message about a prompt that Google blocked, which may be empty; None if it was not blocked."""
    feedback = spelled(object_field(fields, "promptFeedback"))
    if not feedback.get("blockReason"):
        return None
    return _text(feedback, "blockReasonMessage")


def stop_of(reason: object, *, has_calls: bool, is_blocked: bool = False) -> Stop:
    """Return why an answer ended. Gemini has no reason of its own for calls."""
    if is_blocked and reason is None:
        return Stop.REFUSAL
    stop = _STOPS.get(reason, Stop.UNKNOWN) if isinstance(reason, str) else Stop.UNKNOWN
    return Stop.TOOL_CALLS if stop is Stop.END and has_calls else stop


def as_answer_part(part: Part) -> AnswerPart:
    """Return a part as one of an answer: a model gives no function responses."""
    if isinstance(part, ToolResultPart):
        return ForeignPart(family=Family.GEMINI, block=own_part(part), kind="function_response")
    return part


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _seconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp()) if time else 0
    except (ValueError, OverflowError):
        return 0


# -- writing -------------------------------------------------------------------------------------------------------------


def write_answer(answer: Answer, conversation: Conversation) -> WrittenAnswer:
    """Write an answer."""
    dropped: set[str] = set()
    candidate: Body = {"finishReason": FINISH_REASONS[answer.stop], "index": 0}
    parts = _written_parts(answer, candidate, dropped)
    body: Body = {
        "candidates": [{"content": {"role": "model", "parts": parts}, **candidate}],
        "usageMetadata": written_usage(answer.usage),
    }
    body |= head(answer.id, answer.model or conversation.model, answer.created)
    if answer.family is Family.GEMINI:
        return WrittenAnswer(body=_with_own_extras(body, answer.extras))
    if answer.stop_sequence:
        dropped.add("stop_sequence")
    name_answer_extras(answer.extras, dropped)
    return WrittenAnswer(body=body, dropped=tuple(sorted(dropped)))


def _with_own_extras(body: Body, extras: Mapping[str, Any]) -> Body:
    own = merged({key: value for key, value in body.items() if key != "candidates"}, extras)
    found = own.pop("candidates", {})
    if not found and blocked_text(own) is not None:
        return own  # there is no candidate
    return {"candidates": [{**body["candidates"][0], **found}], **own}


def _written_parts(answer: Answer, candidate: Body, dropped: set[str]) -> list[Body]:
    if answer.family is Family.GEMINI:
        return [own_part(part) for part in answer.parts]
    written: list[Body] = []
    is_signed = False
    for part in answer.parts:
        if isinstance(part, TextPart | RefusalPart):
            written.extend([{"text": part.text}] if part.text else [])
        elif isinstance(part, MediaPart):
            written.append(written_media(part, dropped))
        elif isinstance(part, ReasoningPart | ForeignPart):
            dropped.add("reasoning" if isinstance(part, ReasoningPart) else part.kind)
        elif object_of(part.arguments) is None and answer.stop is Stop.MAX_TOKENS:
            dropped.add("incomplete_call")
        elif object_of(part.arguments) is None:
            candidate |= malformed_call(part)
        else:
            written.append(signed_call(part, is_first=not is_signed))
            is_signed = True
    return written


def malformed_call(part: ToolCallPart) -> Body:
    """Return how a candidate ends whose call has arguments that are not a JSON object."""
    return {"finishReason": MALFORMED, "finishMessage": f"Malformed function call: {part.name}({part.arguments})"}


def written_usage(usage: Usage) -> Body:
    """Write usageMetadata. Cache writes are part of the prompt."""
    written = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.prompt + usage.output,
    }
    if usage.cache_read:
        written["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        written["thoughtsTokenCount"] = usage.reasoning
    return written


def head(answer_id: str, model: str, created: int) -> Body:
    """Return the fields of an answer that say which one it is."""
    fields: Body = {"modelVersion": model, "responseId": answer_id}
    if created:
        fields["createTime"] = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {key: value for key, value in fields.items() if value}
