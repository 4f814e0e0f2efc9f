"""OpenAI's Chat Completions as JSON: how a rung changes a request, what an answer says of its end, how two become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import repair_history
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.wires.overlap import unsaid
from rung.wires.wire_json import are_arguments, parsed, part, summed, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = dict[str, Any]

STOPPED: Final = frozenset({"stop", "tool_calls", "function_call"})
SILENT: Final = "the answer says nothing"
_SAYING: Final = ("content", "tool_calls", "function_call", "refusal", "audio")
_FOREIGN: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "provider_specific_fields",
    "refusal",
    "audio",
)
_TYPES: Final = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "permission_denied"),
    404: ("invalid_request_error", "not_found"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


def limit(body: Body) -> int | None:
    """The most tokens an answer may have."""
    value = body.get("max_completion_tokens", body.get("max_tokens"))
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """The same request with another limit, under the name it has there."""
    name = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
    return {**body, name: tokens}


def with_model(body: Body, model: str) -> Body:
    """The same request for another model: what only the former one can read is left out, the history is mended."""
    return {**body, "model": model, "messages": repair_history([_plain(message) for message in history(body)])}


def repaired(body: Body) -> Body:
    """The same request with its history mended and fields that only one provider knows left out."""
    return with_model(body, str(body.get("model", "")))


def resumed(body: Body, words: str) -> Body:
    """The same request with a further turn of the user's."""
    return {**body, "messages": [*history(body), {"role": "user", "content": words}]}


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """The same request with another conversation; calls and results are paired."""
    return {**body, "messages": repair_history(messages)}


def asking(model: str, words: str, tokens: int) -> Body:
    """A request of our own."""
    return {"model": model, "max_completion_tokens": tokens, "messages": [{"role": "user", "content": words}]}


def said(answer: Body) -> str:
    """The words of an answer."""
    content = _message(answer).get("content")
    return content if isinstance(content, str) else ""


def called(answer: Body) -> list[tuple[str, object]]:
    """The tools an answer calls, and with what."""
    functions = [part(call, "function") for call in _calls(_message(answer))]
    return [(str(function.get("name")), parsed(function.get("arguments"))) for function in functions]


def tools(body: Body) -> dict[str, Any]:
    """The schemas of the tools there are, by name."""
    given = body.get("tools")
    found = [part(tool, "function") for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []
    return {str(function.get("name")): function.get("parameters") for function in found}


def found(answer: Body) -> Evidence | None:
    """What is wrong with a whole answer; None if it is good."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        return Evidence(text="the answer is no whole completion", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    for choice in choices:
        stop = choice.get("finish_reason")
        if not isinstance(stop, str):
            text = "a choice of the answer has no finish_reason"
            return Evidence(text=text, finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
        if stop not in STOPPED:
            return Evidence(text=f"the answer ended with {stop}", code=stop, phase=Phase.RESULT)
        message = choice.get("message")
        if stop == "stop" and isinstance(message, dict) and not any(message.get(name) for name in _SAYING):
            return Evidence(text=SILENT, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
        bad = bad_call(_calls(message)) if isinstance(message, dict) else ""
        if bad:
            return Evidence(text=bad, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
    return None


def bad_call(tool_calls: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with the arguments of the first call that has something wrong with them."""
    for call in tool_calls:
        function = call.get("function")
        if isinstance(function, Mapping) and not are_arguments(function.get("arguments")):
            return f"the arguments of the call of {function.get('name')} are not valid JSON"
    return ""


def joined(parts: Sequence[Body]) -> Body:
    """One answer of several, each of which goes on where the one before was cut."""
    whole = dict(parts[0])
    for piece in parts[1:]:
        before, after = said(whole), said(piece)
        message = {**_message(whole), "content": before + unsaid(before, after)}
        message.pop("tool_calls", None)  # it was cut in one
        if _calls(_message(piece)):
            message["tool_calls"] = _calls(_message(piece))
        stop = piece["choices"][0].get("finish_reason")
        whole["choices"] = [{**whole["choices"][0], "message": message, "finish_reason": stop}]
        whole["usage"] = summed(part(whole, "usage"), part(piece, "usage"))
    return whole


def error(status: int, message: str) -> Body:
    """An error of ours in the provider's own shape."""
    kind, code = _TYPES.get(status, ("server_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens in and out, of a usage."""
    return whole_number(usage.get("prompt_tokens")), whole_number(usage.get("completion_tokens"))


def may_be_silent(body: Body) -> bool:
    """May an answer say nothing? After the results of its calls a model may have nothing to add."""
    messages = history(body)
    return bool(messages) and messages[-1].get("role") == "tool"


def history(body: Body) -> list[Body]:
    """The conversation of a request."""
    messages = body.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _message(answer: Body) -> Body:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return part(first, "message")


def _calls(message: Mapping[str, Any]) -> list[Body]:
    tool_calls = message.get("tool_calls")
    return [call for call in tool_calls if isinstance(call, dict)] if isinstance(tool_calls, list) else []


def _plain(message: Body) -> Body:
    if message.get("role") != "assistant" or not any(name in message for name in _FOREIGN):
        return message
    return {name: value for name, value in message.items() if name not in _FOREIGN}
