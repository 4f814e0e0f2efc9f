"""JSON bodies of OpenAI's Chat Completions API: changes to a request, validation of a response, and merging of responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import repair_history
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stop_reasons import ends_text, stop_defect
from rung.wires.openai_settings import fitted_chat
from rung.wires.overlap import without_overlap
from rung.wires.tool_arguments import invalid_call
from rung.wires.wire_json import add_usage, int_or_zero, is_tool_arguments, object_field, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Body = dict[str, Any]

EMPTY_RESPONSE: Final = "the response is empty"
REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details", "provider_specific_fields")
_NO_OUTPUT: Final = frozenset({"role", "annotations"})  # reasoning alone is an answer
_PROVIDER_FIELDS: Final = (*REASONING_FIELDS, "refusal", "audio")
_ERROR_TYPES: Final = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "permission_denied"),
    404: ("invalid_request_error", "not_found"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


def limit(body: Body) -> int | None:
    """Return the output token limit, or None."""
    value = body.get("max_completion_tokens", body.get("max_tokens"))
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """Return the request with another output limit, under the parameter name that the request uses."""
    name = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
    return {**body, name: tokens}


def with_model(body: Body, model: str) -> Body:
    """Return the request for another model, without provider-specific fields and with a repaired history."""
    return {
        **fitted_chat(body, model),
        "model": model,
        "messages": repair_history([_without_provider_fields(message) for message in history(body)]),
    }


def with_repaired_history(body: Body) -> Body:
    """Return the request with a repaired history and without provider-specific fields."""
    return with_model(body, str(body.get("model", "")))


def with_user_message(body: Body, text: str) -> Body:
    """Return the request with another user message."""
    return {**body, "messages": [*history(body), {"role": "user", "content": text}]}


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """Return the request with another conversation, in which tool calls and results are paired."""
    return {**body, "messages": repair_history(messages)}


def build_request(model: str, text: str, tokens: int) -> Body:
    """Build a request with one user message."""
    return {"model": model, "max_completion_tokens": tokens, "messages": [{"role": "user", "content": text}]}


def text_of(response: Body) -> str:
    """Return the text of a response."""
    content = _message(response).get("content")
    return content if isinstance(content, str) else ""


def tool_calls(response: Body) -> list[tuple[str, object]]:
    """Return the names and arguments of the tool calls in a response."""
    functions = [object_field(call, "function") for call in _calls(_message(response))]
    return [(str(function.get("name")), parse_json(function.get("arguments"))) for function in functions]


def tool_schemas(body: Body) -> dict[str, Any]:
    """Return the schemas of the tools in a request, by name."""
    entries = body.get("tools")
    tools = (
        [object_field(tool, "function") for tool in entries if isinstance(tool, dict)]
        if isinstance(entries, list)
        else []
    )
    return {str(function.get("name")): function.get("parameters") for function in tools}


def validate(response: Body) -> Evidence | None:
    """Return evidence of a defect in a response, or None if it is good."""
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        return Evidence(
            text="the response is not a complete completion", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT
        )
    for choice in choices:
        stop = choice.get("finish_reason")
        if not isinstance(stop, str):
            text = "a choice of the response has no finish_reason"
            return Evidence(text=text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
        defect = stop_defect(stop)
        if defect is not None:
            return defect
        message = choice.get("message")
        if (
            ends_text(stop)
            and isinstance(message, dict)
            and not any(message[name] for name in message if name not in _NO_OUTPUT)
        ):
            return Evidence(text=EMPTY_RESPONSE, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
        defect = _call_defect(_calls(message)) if isinstance(message, dict) else None
        if defect is not None:
            return defect
    return None


def _call_defect(tool_calls: Sequence[Mapping[str, Any]]) -> Evidence | None:
    """Return evidence of the first call with invalid arguments, or None."""
    for call in tool_calls:
        function = call.get("function")
        if isinstance(function, Mapping) and not is_tool_arguments(function.get("arguments")):
            name = str(function.get("name"))
            return invalid_call(name, f"the arguments of the call of {name} are not valid JSON")
    return None


def merge(parts: Sequence[Body]) -> Body:
    """Merge responses, each of which continues the one before."""
    merged = dict(parts[0])
    for piece in parts[1:]:
        before, after = text_of(merged), text_of(piece)
        message = {**_message(merged), "content": before + without_overlap(before, after)}
        message.pop("tool_calls", None)  # a tool call that was cut off is dropped
        if _calls(_message(piece)):
            message["tool_calls"] = _calls(_message(piece))
        stop = piece["choices"][0].get("finish_reason")
        merged["choices"] = [{**merged["choices"][0], "message": message, "finish_reason": stop}]
        merged["usage"] = add_usage(object_field(merged, "usage"), object_field(piece, "usage"))
    return merged


def choices(body: Body) -> int:
    """Return the number of requested alternatives."""
    return max(1, int_or_zero(body.get("n")))


def is_constrained(body: Body) -> bool:
    """Return whether the text of the answer must be JSON, so that it cannot be continued in prose."""
    return object_field(body, "response_format").get("type") in ("json_schema", "json_object")


def error_body(status: int, message: str, code: str = "") -> Body:
    """Build an error response in the provider's format; `code`: that of the error, if the status does not say it."""
    kind, usual = _ERROR_TYPES.get(status, ("server_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code or usual}}


def references(items: Sequence[Body], final: Body) -> dict[str, Any]:  # noqa: ARG001  # the signature of all wires
    """Return nothing: requests of this API refer to no earlier response."""
    return {}


def unstored_references(request: Body, response: Body) -> dict[str, Any]:  # noqa: ARG001  # the signature of all wires
    """Return nothing: requests of this API refer to no earlier response."""
    return {}


def with_references(body: Body, find: Callable[[str], Any]) -> Body:  # noqa: ARG001  # the signature of all wires
    """Return the request: this API has no references."""
    return body


def allows_empty(body: Body) -> bool:
    """Return whether an empty response is valid: after tool results a model may have nothing to add."""
    messages = history(body)
    return bool(messages) and messages[-1].get("role") == "tool"


def history(body: Body) -> list[Body]:
    """Return the conversation of a request."""
    messages = body.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _message(response: Body) -> Body:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return object_field(first, "message")


def _calls(message: Mapping[str, Any]) -> list[Body]:
    tool_calls = message.get("tool_calls")
    return [call for call in tool_calls if isinstance(call, dict)] if isinstance(tool_calls, list) else []


def _without_provider_fields(message: Body) -> Body:
    if message.get("role") != "assistant" or not any(name in message for name in _PROVIDER_FIELDS):
        return message
    return {name: value for name, value in message.items() if name not in _PROVIDER_FIELDS}
