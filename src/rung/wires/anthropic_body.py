"""JSON bodies of Anthropic's Messages API: changes to a request, validation of a response, and merging of responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import repair_history
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.stop_reasons import ends_text, stop_defect
from rung.wires.anthropic_threads import THREAD_NOT_FOUND
from rung.wires.anthropic_turns import without_thinking_settings
from rung.wires.claude_settings import fitted_settings
from rung.wires.overlap import without_overlap
from rung.wires.tool_arguments import invalid_call
from rung.wires.wire_json import INCOMPLETE_MARK, add_usage, object_field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Body = dict[str, Any]

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
EMPTY_RESPONSE: Final = "the response is empty"
_MIN_THINKING_TOKENS: Final = 1_024
_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def limit(body: Body) -> int | None:
    """Return the output token limit, or None."""
    value = body.get("max_tokens")
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """Return the request with another output limit. The thinking budget is reduced to fit."""
    changed = {**body, "max_tokens": tokens}
    thinking = body.get("thinking")
    if isinstance(thinking, Mapping) and isinstance(thinking.get("budget_tokens"), int):
        room = max(_MIN_THINKING_TOKENS, tokens - 1)
        changed["thinking"] = {**thinking, "budget_tokens": min(thinking["budget_tokens"], room)}
    return changed


def with_model(body: Body, model: str) -> Body:
    """Return the request for another model, without content of the former model and with a repaired history."""
    changed = {
        **fitted_settings(body, model),
        "model": model,
        "messages": repair_history([_without_thinking(message) for message in history(body)]),
    }
    if _is_mid_turn(body) and object_field(changed, "thinking").get("type") == "enabled":
        return without_thinking_settings(changed)  # the API rejects them in the middle of a turn that began without
    return changed


def with_repaired_history(body: Body) -> Body:
    """Return the request with a repaired history: tool calls and results paired, no empty messages, valid thinking."""
    messages = [message for message in repair_history(history(body)) if message.get("content") not in ("", [], None)]
    changed = {**body, "messages": messages}
    return changed if messages != body.get("messages") else with_model(body, str(body.get("model", "")))


def with_user_message(body: Body, text: str) -> Body:
    """Return the request with another user message. Current models reject assistant prefill."""
    return {**body, "messages": [*history(body), {"role": "user", "content": text}]}


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """Return the request with another conversation, in which tool calls and results are paired."""
    return {**body, "messages": repair_history(messages)}


def build_request(model: str, text: str, tokens: int) -> Body:
    """Build a request with one user message."""
    return {"model": model, "max_tokens": tokens, "messages": [{"role": "user", "content": text}]}


def text_of(response: Body) -> str:
    """Return the text of a response."""
    return "".join(str(block.get("text") or "") for block in _blocks(response) if block.get("type") == "text")


def tool_calls(response: Body) -> list[tuple[str, object]]:
    """Return the names and arguments of the tool calls in a response."""
    return [(str(b.get("name")), b.get("input")) for b in _blocks(response) if b.get("type") == "tool_use"]


def tool_schemas(body: Body) -> dict[str, Any]:
    """Return the schemas of the tools in a request, by name."""
    entries = body.get("tools")
    tools = [tool for tool in entries if isinstance(tool, dict)] if isinstance(entries, list) else []
    return {str(tool.get("name")): tool.get("input_schema") for tool in tools}


def validate(response: Body) -> Evidence | None:
    """Return evidence of a defect in a response, or None if it is good."""
    stop = response.get("stop_reason")
    if response.get("type") != "message" or not isinstance(response.get("content"), list) or not isinstance(stop, str):
        return Evidence(
            text="the response is not a complete message", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT
        )
    defect = stop_defect(stop)
    if defect is not None:
        return defect
    blocks = _blocks(response)
    if ends_text(stop) and not blocks:
        return Evidence(text=EMPTY_RESPONSE, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
    for block in blocks:
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), Mapping):
            name = str(block.get("name"))
            return invalid_call(name, f"the arguments of the call of {name} are not a JSON object")
    return None


def merge(parts: Sequence[Body]) -> Body:
    """Merge responses, each of which continues the one before."""
    merged = dict(parts[0])
    for piece in parts[1:]:
        blocks = [block for block in _blocks(piece) if block.get("type") not in _THINKING]
        # A tool call that was cut off is dropped.
        kept = [block for block in _blocks(merged) if block.get("type") != "tool_use"]
        merged["content"] = _join_blocks(kept, blocks)
        merged["usage"] = add_usage(object_field(merged, "usage"), object_field(piece, "usage"))
        merged |= {key: piece.get(key) for key in ("stop_reason", "stop_sequence")}
    return merged


def choices(body: Body) -> int:  # noqa: ARG001  # the signature of all wires
    """Return the number of requested alternatives."""
    return 1


def is_constrained(body: Body) -> bool:
    """Return whether the text of the answer must be JSON, so that it cannot be continued in prose."""
    formats = (object_field(body, "output_format"), object_field(object_field(body, "output_config"), "format"))
    return any(each.get("type") == "json_schema" for each in formats)


def error_body(status: int, message: str, code: str = "") -> Body:
    """Build an error response in the provider's format, which has a code for errors of threads only."""
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004  # HTTP
    details = {"details": {"error_code": code}} if code == THREAD_NOT_FOUND else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}}


def _join_blocks(before: list[Body], after: list[Body]) -> list[Body]:
    if before and after and before[-1].get("type") == after[0].get("type") == "text":
        text_before, more = str(before[-1].get("text", "")), str(after[0].get("text", ""))
        text = {**before[-1], "text": text_before + without_overlap(text_before, more)}
        return [*before[:-1], text, *after[1:]]
    return [*before, *after]


def history(body: Body) -> list[Body]:
    """Return the conversation of a request."""
    messages = body.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _blocks(message: Mapping[str, Any]) -> list[Body]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _without_thinking(message: Body) -> Body:
    """Return the message without thinking blocks, whose signatures belong to another model."""
    if not any(block.get("type") in _THINKING for block in _blocks(message)):
        return message
    left = [block for block in _blocks(message) if block.get("type") not in _THINKING]
    return {**message, "content": left or [{"type": "text", "text": "…"}]}


def allows_empty(body: Body) -> bool:
    """Return whether an empty response is valid: after tool results a model may have nothing to add."""
    return _is_mid_turn(body)


def references(items: Sequence[Body], final: Body) -> dict[str, Any]:  # noqa: ARG001  # the signature of all wires
    """Return nothing: requests of this API refer to no earlier response."""
    return {}


def unstored_references(request: Body, response: Body) -> dict[str, Any]:  # noqa: ARG001  # the signature of all wires
    """Return nothing: requests of this API refer to no earlier response."""
    return {}


def with_references(body: Body, find: Callable[[str], Any]) -> Body:  # noqa: ARG001  # the signature of all wires
    """Return the request without thinking that broke off before it was signed."""
    messages = history(body)
    left = [_without_incomplete(message) for message in messages]
    return {**body, "messages": left} if left != messages else body


def _without_incomplete(message: Body) -> Body:
    blocks = _blocks(message)
    left = [block for block in blocks if block.get("signature") != INCOMPLETE_MARK]
    return {**message, "content": left or [{"type": "text", "text": "…"}]} if len(left) < len(blocks) else message


def _is_mid_turn(body: Body) -> bool:
    """Return whether the last message holds tool results, so that the model is in the middle of a turn."""
    messages = history(body)
    return bool(messages) and any(block.get("type") == "tool_result" for block in _blocks(messages[-1]))
