"""JSON bodies of OpenAI's Responses API: changes to a request, validation of a response, and merging of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.wires.openai_settings import fitted_responses
from rung.wires.overlap import without_overlap
from rung.wires.tool_arguments import invalid_call
from rung.wires.wire_json import (
    INCOMPLETE_MARK,
    KEEP,
    add_usage,
    is_tool_arguments,
    object_field,
    object_list,
    parse_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Body = dict[str, Any]

EMPTY_RESPONSE: Final = "the response is empty"
_ERROR_TYPES: Final = {401: "invalid_api_key", 404: "not_found", 413: "request_too_large", 429: "rate_limit_exceeded"}
_PENDING_STATUSES: Final = frozenset({"queued", "in_progress"})  # a background response, polled later


def limit(body: Body) -> int | None:
    """Return the output token limit, or None."""
    value = body.get("max_output_tokens")
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """Return the request with another output limit."""
    return {**body, "max_output_tokens": tokens}


def with_model(body: Body, model: str) -> Body:
    """Return the request for another model, without reasoning items and with paired tool calls and results."""
    items = history(body)
    left = _pair_calls([item for item in items if item.get("type") != "reasoning"])
    return {**fitted_responses(body, model), "model": model} | ({"input": left} if left != items else {})


def with_repaired_history(body: Body) -> Body:
    """Return the request with a repaired history."""
    items = history(body)
    left = _pair_calls(items)
    return {**body, "input": left} if left != items else with_model(body, str(body.get("model", "")))


def with_user_message(body: Body, text: str) -> Body:
    """Return the request with another user message."""
    return {**body, "input": [*history(body), {"role": "user", "content": text}]}


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """Return the request with another conversation, in which tool calls and results are paired."""
    return {**body, "input": _pair_calls(messages)}


def build_request(model: str, text: str, tokens: int) -> Body:
    """Build a request with one user message."""
    return {"model": model, "max_output_tokens": tokens, "input": text}


def text_of(response: Body) -> str:
    """Return the text of a response."""
    return "".join(
        str(part.get("text", ""))
        for item in _output(response)
        for part in object_list(item, "content")
        if item.get("type") == "message"
    )


def tool_calls(response: Body) -> list[tuple[str, object]]:
    """Return the names and arguments of the tool calls in a response."""
    calls = [item for item in _output(response) if item.get("type") == "function_call"]
    return [(str(item.get("name")), parse_json(item.get("arguments"))) for item in calls]


def tool_schemas(body: Body) -> dict[str, Any]:
    """Return the schemas of the tools in a request, by name."""
    entries = body.get("tools")
    tools = [tool for tool in entries if isinstance(tool, dict)] if isinstance(entries, list) else []
    return {str(tool.get("name")): tool.get("parameters") for tool in tools}


def validate(response: Body) -> Evidence | None:
    """Return evidence of a defect in a response, or None if it is good."""
    status = response.get("status")
    if not isinstance(response.get("output"), list):
        return Evidence(text="the response is not complete", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    if status == "incomplete":
        reason = str((object_field(response, "incomplete_details")).get("reason") or "incomplete")
        return Evidence(text=f"the response ended with {reason}", code=reason, phase=Phase.RESULT)
    if status == "failed":
        failure = object_field(response, "error")
        text = str(failure.get("message") or "the response failed")
        return Evidence(text=text, code=str(failure.get("code") or "server_error"), phase=Phase.RESULT)
    if status not in (None, "completed", "cancelled", *_PENDING_STATUSES):
        return Evidence(text=f"the response is {status}", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    if status == "completed" and not has_output(response):
        return Evidence(text=EMPTY_RESPONSE, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
    return next((defect for item in _output(response) if (defect := _call_defect(item)) is not None), None)


def has_output(response: Body) -> bool:
    """Return whether a response has output: text, a refusal, audio, a tool call, reasoning that is shown, or other items."""
    return any(_has_content(item) for item in _output(response))


def _has_content(item: Mapping[str, Any]) -> bool:
    if item.get("type") == "reasoning":
        return any(part.get("text") for name in ("summary", "content") for part in object_list(item, name))
    if item.get("type") != "message":
        return True
    return any(part.get("type") != "output_text" or part.get("text") for part in object_list(item, "content"))


def _call_defect(item: Mapping[str, Any]) -> Evidence | None:
    """Return evidence of a call with invalid arguments, or None."""
    if item.get("type") != "function_call" or is_tool_arguments(item.get("arguments")):
        return None
    name = str(item.get("name"))
    return invalid_call(name, f"the arguments of the call of {name} are not valid JSON")


def merge(parts: Sequence[Body]) -> Body:
    """Merge responses, each of which continues the one before."""
    merged = dict(parts[0])
    for piece in parts[1:]:
        later = [item for item in _output(piece) if item.get("type") != "reasoning"]
        # A tool call that was cut off is dropped.
        kept = [item for item in _output(merged) if item.get("type") != "function_call"]
        merged["output"] = _join_items(kept, later)
        merged["usage"] = add_usage(object_field(merged, "usage"), object_field(piece, "usage"))
        merged |= {key: piece.get(key, merged.get(key)) for key in ("id", "status", "incomplete_details", "error")}
    return merged


def references(items: Sequence[Body], final: Body) -> dict[str, Any]:
    """Return what stands for the ids of items that the final response at the provider does not have.

    A message stands for itself; a reasoning item for that of the final response, if the client does not have it.
    """
    final_ids = {str(item.get("id")): item for item in _output(final)}
    shown = {str(item.get("id")) for item in items}
    hidden = [name for name, item in final_ids.items() if item.get("type") == "reasoning" and name not in shown]
    found: dict[str, Any] = {}
    for item in items:
        name = str(item.get("id") or "")
        if name and final_ids.get(name) != item:
            inline = {key: value for key, value in item.items() if key not in ("id", "status")}
            found[name] = inline if item.get("type") != "reasoning" else next(iter(hidden), None)
    return found


def unstored_references(request: Body, response: Body) -> dict[str, Any]:
    """Return what stands for the ids of a response that no provider has: its items, and for itself the conversation.

    Nothing if the client asked not to store the response: it does not refer to it.
    """
    name = str(response.get("id") or "")
    if not name or request.get("store") is False:
        return {}
    found = references(_output(response), {})
    said = [found.get(str(item.get("id") or ""), item) for item in _output(response)]
    whole = [*history(request), *(item for item in said if isinstance(item, dict))]
    return {**found, name: {"previous_response_id": request.get("previous_response_id"), "input": whole}}


def with_references(body: Body, find: Callable[[str], Any]) -> Body:
    """Return the request with what stands for its references; `find` returns `KEEP` for what stays."""
    previous = find(str(body.get("previous_response_id") or ""))
    changed = dict(body)
    items = history(body)
    if isinstance(previous, str):
        changed["previous_response_id"] = previous
    elif isinstance(previous, dict):
        changed["previous_response_id"] = previous.get("previous_response_id")
        items = [*object_list(previous, "input"), *items]
    found = [other for item in items if (other := _resolved(item, find)) is not None]
    if found != history(body):
        changed["input"] = found
    return changed if changed != body else body


def _resolved(item: Body, find: Callable[[str], Any]) -> Body | None:
    if item.get("type") == "reasoning" and item.get("encrypted_content") == INCOMPLETE_MARK:
        return None
    found = find(str(item.get("id") or ""))
    if found is KEEP:
        return item
    if isinstance(found, str):
        return {**item, "id": found}
    if found is None or item.get("type") == "item_reference":
        return found  # type: ignore[no-any-return]  # an item, or nothing
    return {key: value for key, value in item.items() if key != "id"}


def choices(body: Body) -> int:  # noqa: ARG001  # the signature of all wires
    """Return the number of requested alternatives."""
    return 1


def is_constrained(body: Body) -> bool:
    """Return whether the text of the answer must be JSON, so that it cannot be continued in prose."""
    return object_field(object_field(body, "text"), "format").get("type") in ("json_schema", "json_object")


def error_body(status: int, message: str, code: str = "") -> Body:
    """Build an error response in the provider's format; `code`: that of the error, if the status does not say it."""
    kind = "server_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004  # HTTP
    return {"error": {"message": message, "type": kind, "param": None, "code": code or _ERROR_TYPES.get(status)}}


def _join_items(before: list[Body], after: list[Body]) -> list[Body]:
    """Join output items. Text continues in the message that was cut off."""
    if not before or not after or not before[-1].get("type") == after[0].get("type") == "message":
        return [*before, *after]
    last, first = before[-1], after[0]
    parts, more = object_list(last, "content"), object_list(first, "content")
    if parts and more and parts[-1].get("type") == more[0].get("type") == "output_text":
        text, rest = str(parts[-1].get("text", "")), str(more[0].get("text", ""))
        parts[-1] = {**parts[-1], "text": text + without_overlap(text, rest)}
        more = more[1:]
    return [*before[:-1], {**last, "content": [*parts, *more], "status": first.get("status")}, *after[1:]]


def _pair_calls(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the items with a result for every call, and without results that have no call."""
    called = {str(item.get("call_id")) for item in items if item.get("type") == "function_call"}
    answered = {str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"}
    paired: list[Mapping[str, Any]] = []
    for item in items:
        call = str(item.get("call_id"))
        if item.get("type") == "function_call_output" and call not in called:
            continue
        paired.append(item)
        if item.get("type") == "function_call" and call not in answered:
            paired.append({"type": "function_call_output", "call_id": call, "output": MISSING_RESULT_TEXT})
    return paired


def allows_empty(body: Body) -> bool:
    """Return whether an empty response is valid: after tool results a model may have nothing to add."""
    items = history(body)
    return bool(items) and items[-1].get("type") == "function_call_output"


def history(body: Body) -> list[Body]:
    """Return the conversation of a request."""
    content = body.get("input")
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def _output(response: Body) -> list[Body]:
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
