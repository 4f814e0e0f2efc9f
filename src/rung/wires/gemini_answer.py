"""JSON answers of Gemini's generateContent: their text and calls, validation, and merging. Chunks of a stream look the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stop_reasons import stop_defect
from rung.wires.gemini_messages import call_in, field_of, is_thought, parts_of, spelling
from rung.wires.overlap import without_overlap
from rung.wires.tool_arguments import invalid_call
from rung.wires.wire_json import add_usage, object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = dict[str, Any]

EMPTY_RESPONSE: Final = "the response is empty"
SIGNATURES: Final = ("thoughtSignature", "thought_signature")
_NO_OUTPUT: Final = frozenset({"thought", *SIGNATURES})
_UNSPECIFIED: Final = "FINISH_REASON_UNSPECIFIED"
_STATUSES: Final = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "FAILED_PRECONDITION", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED", 409: "ABORTED", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 501: "UNIMPLEMENTED",
    502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 529: "UNAVAILABLE",
}  # fmt: skip


def text_of(response: Body) -> str:
    """Return the text of a response."""
    return text_in(_parts(response))


def text_in(parts: Sequence[Body]) -> str:
    """Return the text of parts, without thoughts."""
    return "".join(str(part.get("text") or "") for part in parts if not is_thought(part))


def tool_calls(response: Body) -> list[tuple[str, object]]:
    """Return the names and arguments of the function calls in a response."""
    return calls_in(_parts(response))


def calls_in(parts: Sequence[Body]) -> list[tuple[str, object]]:
    """Return the names and arguments of the function calls in parts. A call that comes in pieces is left out."""
    calls = [call for part in parts if (call := call_in(part))]
    whole = [call for call in calls if not (field_of(call, "willContinue") or field_of(call, "partialArgs"))]
    return [(str(call.get("name")), {} if call.get("args") is None else call["args"]) for call in whole]


def is_output(part: Body) -> bool:
    """Return whether a part has output: text, a call, media, or anything but thoughts and signatures."""
    return not is_thought(part) and any(value for name, value in part.items() if name not in _NO_OUTPUT)


def block_reason(response: Body) -> str:
    """Return why the prompt was blocked; empty if it was not."""
    return str(field_of(object_field(response, spelling(response, "promptFeedback")), "blockReason") or "")


def blocked(reason: str) -> Evidence:
    """Return the evidence of a blocked prompt."""
    text = f"the prompt was blocked: {reason}"
    return Evidence(text=text, code=reason, finding=Kind.CONTENT_FILTER, phase=Phase.RESULT)


def finish_reason(candidate: Body) -> str:
    """Return why a candidate ended; empty if it has not."""
    reason = str(field_of(candidate, "finishReason") or "")
    return "" if reason == _UNSPECIFIED else reason


def validate(response: Body) -> Evidence | None:
    """Return evidence of a defect in a response, or None if it is good."""
    candidates = object_list(response, "candidates")
    if not candidates:
        reason = block_reason(response)
        return blocked(reason) if reason else _incomplete("the response has no candidates")
    return next((defect for candidate in candidates if (defect := _defect(candidate)) is not None), None)


def _incomplete(text: str) -> Evidence:
    return Evidence(text=text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)


def _defect(candidate: Body) -> Evidence | None:
    reason = finish_reason(candidate)
    if not reason:
        return _incomplete("a candidate of the response has no finishReason")
    parts = parts_of(candidate.get("content"))
    defect = stop_defect(reason)
    if defect is None and not any(is_output(part) for part in parts):
        return Evidence(text=EMPTY_RESPONSE, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
    names = (name for name, arguments in calls_in(parts) if not isinstance(arguments, Mapping))
    invalid = next(names, None)
    if defect is None and invalid is not None:
        return invalid_call(invalid, f"the arguments of the call of {invalid} are not a JSON object")
    return defect


def merge(parts: Sequence[Body]) -> Body:
    """Merge responses, each of which continues the one before."""
    merged = dict(parts[0])
    for piece in parts[1:]:
        later = [part for part in _parts(piece) if not is_thought(part)]
        # A call that was cut off is dropped.
        kept = [part for part in _parts(merged) if not call_in(part)]
        candidate = {**_candidate(piece), "content": {"role": "model", "parts": _join_parts(kept, later)}}
        merged["candidates"] = [candidate]
        usage = add_usage(object_field(merged, "usageMetadata"), object_field(piece, "usageMetadata"))
        merged |= {"usageMetadata": usage} if usage else {}
    return merged


def error_body(status: int, message: str, code: str = "") -> Body:  # noqa: ARG001  # the signature of all wires
    """Build an error response in the provider's format, whose code is the status."""
    name = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")  # noqa: PLR2004  # HTTP
    number = 503 if status == 529 else status  # noqa: PLR2004  # Google's name of an overload
    return {"error": {"code": number, "message": message, "status": name}}


def _join_parts(before: list[Body], after: list[Body]) -> list[Body]:
    if before and after and _is_text(before[-1]) and _is_text(after[0]):
        so_far = text_in(before)
        text = {**before[-1], **after[0], "text": before[-1]["text"] + without_overlap(so_far, after[0]["text"])}
        return [*before[:-1], text, *after[1:]]
    return [*before, *after]


def _is_text(part: Body) -> bool:
    return isinstance(part.get("text"), str) and not is_thought(part)


def _candidate(response: Body) -> Body:
    candidates = object_list(response, "candidates")
    return candidates[0] if candidates else {}


def _parts(response: Body) -> list[Body]:
    return parts_of(_candidate(response).get("content"))
