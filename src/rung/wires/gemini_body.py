"""JSON bodies of Gemini's generateContent: changes to a request. `gemini_answer` reads the responses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import repair_history
from rung.wires.gemini_answer import SIGNATURES, error_body, merge, text_of, tool_calls, validate
from rung.wires.gemini_messages import (
    contents_of,
    field_of,
    parts_of,
    result_in,
    spelling,
    to_contents,
    to_messages,
)
from rung.wires.wire_json import int_or_zero, object_field, object_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Body = dict[str, Any]

__all__ = [
    "allows_empty", "build_request", "choices", "error_body", "history", "is_constrained", "limit", "merge", "references",
    "text_of", "tool_calls", "tool_schemas", "unstored_references", "validate", "with_history", "with_limit", "with_model",
    "with_references", "with_repaired_history", "with_user_message",
]  # fmt: skip

# Gemini 3 rejects a function call without a signature. Google's own agent signs calls of other models in this way.
SKIPPED_SIGNATURE: Final = "skip_thought_signature_validator"
_VERSION: Final = re.compile(r"gemini-(\d+(?:\.\d+)?)")
_SIGNED_VERSION: Final = 3.0  # calls must have signatures, and `thinkingLevel` is known
_THINKING_VERSION: Final = 2.5
_JSON_FIELDS: Final = ("responseSchema", "responseJsonSchema")
_JSON_TYPES: Final = ("application/json", "text/x.enum")


def limit(body: Body) -> int | None:
    """Return the output token limit, or None."""
    value = field_of(_config(body), "maxOutputTokens")
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """Return the request with another output limit."""
    config = _config(body)
    return _with_config(body, {**config, spelling(config, "maxOutputTokens"): tokens})


def with_model(body: Body, model: str) -> Body:
    """Return the request for another model: without thoughts and signatures of the former, with a repaired history.

    The path names the model, so that a body has it only by chance.
    """
    found = _VERSION.search(model)
    version = float(found[1]) if found is not None else _SIGNED_VERSION  # such as gemini-flash-latest
    messages = [_without_thoughts(message, is_signed=version >= _SIGNED_VERSION) for message in history(body)]
    changed = {**body, "contents": to_contents(repair_history(messages))}
    if "model" in body:
        changed["model"] = model if "/" in model else f"models/{model}"
    return _with_thinking_of(changed, version)


def with_repaired_history(body: Body) -> Body:
    """Return the request with a repaired history: calls and responses paired, no empty contents, no invalid signatures."""
    messages = history(body)
    repaired = [message for message in repair_history(messages) if message.get("content")]
    if repaired == messages:
        repaired = [_without_thoughts(message, is_signed=True) for message in messages]
    return {**body, "contents": to_contents(repaired)}


def with_user_message(body: Body, text: str) -> Body:
    """Return the request with another user message."""
    return {**body, "contents": [*contents_of(body), {"role": "user", "parts": [{"text": text}]}]}


def history(body: Body) -> list[Body]:
    """Return the conversation of a request as messages with content blocks."""
    return to_messages(contents_of(body))


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """Return the request with another conversation, in which calls and responses are paired."""
    return {**body, "contents": to_contents(repair_history(messages))}


def build_request(model: str, text: str, tokens: int) -> Body:  # noqa: ARG001  # the path names the model
    """Build a request with one user message."""
    return {
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {"maxOutputTokens": tokens},
    }


def tool_schemas(body: Body) -> dict[str, Any]:
    """Return the schemas of the functions in a request, by name."""
    schemas: dict[str, Any] = {}
    for tool in object_list(body, "tools"):
        for function in object_list(tool, spelling(tool, "functionDeclarations")):
            schema = field_of(function, "parametersJsonSchema")
            schemas[str(function.get("name"))] = schema if schema is not None else function.get("parameters")
    return schemas


def choices(body: Body) -> int:
    """Return the number of requested alternatives."""
    return max(1, int_or_zero(field_of(_config(body), "candidateCount")))


def is_constrained(body: Body) -> bool:
    """Return whether the text of the answer must be JSON, so that it cannot be continued in prose."""
    config = _config(body)
    return field_of(config, "responseMimeType") in _JSON_TYPES or any(field_of(config, name) for name in _JSON_FIELDS)


def allows_empty(body: Body) -> bool:
    """Return whether an empty response is valid: after function responses a model may have nothing to add."""
    contents = contents_of(body)
    return bool(contents) and any(result_in(part) for part in parts_of(contents[-1]))


def references(items: Sequence[Body], final: Body) -> dict[str, Any]:  # noqa: ARG001  # the signature of all wires
    """Return nothing: requests of this API refer to no earlier response."""
    return {}


def unstored_references(request: Body, response: Body) -> dict[str, Any]:  # noqa: ARG001  # the signature of all wires
    """Return nothing: requests of this API refer to no earlier response."""
    return {}


def with_references(body: Body, find: Callable[[str], Any]) -> Body:  # noqa: ARG001  # the signature of all wires
    """Return the request: this API has no references."""
    return body


def _config(body: Body) -> Body:
    return object_field(body, spelling(body, "generationConfig"))


def _with_config(body: Body, config: Body) -> Body:
    return {**body, spelling(body, "generationConfig"): config}


def _with_thinking_of(body: Body, version: float) -> Body:
    """Return the request without settings of thinking that models of this version reject."""
    config = _config(body)
    name = spelling(config, "thinkingConfig")
    thinking = object_field(config, name)
    if not thinking or version >= _SIGNED_VERSION:
        return body
    levels = ("thinkingLevel", "thinking_level")
    left = {key: value for key, value in thinking.items() if key not in levels and version >= _THINKING_VERSION}
    return _with_config(
        body, {**{key: value for key, value in config.items() if key != name}, **({name: left} if left else {})}
    )


def _without_thoughts(message: Body, *, is_signed: bool) -> Body:
    """Return a message of a model without thoughts and signatures. `is_signed`: the first call of a turn has one again."""
    if message.get("role") != "assistant":
        return message
    blocks = [_without_signature(block) for block in message["content"] if block.get("type") != "thought"]
    call = next((block for block in blocks if block.get("type") == "tool_use"), None) if is_signed else None
    if call is not None:
        call["part"] = {**object_field(call, "part"), "thoughtSignature": SKIPPED_SIGNATURE}
    return {**message, "content": blocks or [{"type": "text", "text": "…"}]}


def _without_signature(block: Body) -> Body:
    part = {name: value for name, value in object_field(block, "part").items() if name not in SIGNATURES}
    return {**{name: value for name, value in block.items() if name != "part"}, **({"part": part} if part else {})}
