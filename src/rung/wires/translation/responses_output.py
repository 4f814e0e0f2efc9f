"""Response object of OpenAI's Responses API and its items, as the writers of answers and streams build them."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.wires.translation.answer import Stop, Usage
from rung.wires.translation.responses_client_tools import CLIENT_TOOLS, call_value
from rung.wires.translation.responses_history import call_id as allowed_call_id
from rung.wires.translation.responses_request import original_of, write_request
from rung.wires.translation.responses_tools import ToolAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import Conversation

Item = dict[str, Any]

# Fields of the request that a response repeats, with their defaults.
_REPEATED: Final[Mapping[str, Any]] = {
    "background": False, "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": None,
    "parallel_tool_calls": True, "previous_response_id": None, "prompt_cache_key": None, "reasoning": None,
    "safety_identifier": None, "service_tier": "default", "store": True, "temperature": 1.0, "text": None,
    "tool_choice": "auto", "tools": None, "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip
_TEXT_FORMAT: Final[Mapping[str, Any]] = {"format": {"type": "text"}}
_REASONING: Final[Mapping[str, Any]] = {"effort": None, "summary": None}
_SAFE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,48}").fullmatch


class OutputEnd(NamedTuple):
    """Status of a response, and the reason of an incomplete or failed one."""

    status: str
    reason: str = ""
    error: Mapping[str, Any] | None = None


def output_status(stop: Stop, *, has_refusal: bool) -> OutputEnd:
    """Return the status that says why an answer ended."""
    if stop in (Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW):
        return OutputEnd("incomplete", "max_output_tokens")
    if stop is Stop.REFUSAL and not has_refusal:
        return OutputEnd("incomplete", "content_filter")
    if stop is Stop.MALFORMED_CALL:
        message = "The model wrote a tool call that is not valid."
        return OutputEnd("failed", error={"code": "server_error", "message": message})
    return OutputEnd("completed")


def item_base(name: str) -> str:
    """Return what the ids of a response's items have in common: its own id, or a hash of it."""
    name = name.removeprefix("resp_")
    return name if _SAFE_ID(name) else hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:40]


def text_part(text: str) -> Item:
    """Build a text of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_part(text: str) -> Item:
    """Build a refusal of a message."""
    return {"type": "refusal", "refusal": text}


def message_item(name: str, content: list[Item], status: str = "completed") -> Item:
    """Build a message."""
    return {"id": name, "type": "message", "status": status, "role": "assistant", "content": content}


def tool_address(conversation: Conversation, tool: str) -> ToolAddress:
    """Return how the client calls a tool."""
    original = original_of(conversation)
    return (original.tools.addresses.get(tool) if original is not None else None) or ToolAddress("function", tool)


def call_item(
    conversation: Conversation, *, name: str, call_id: str, tool: str, arguments: str, status: str = "completed"
) -> Item:
    """Build the call of a tool, of the type that the client has defined the tool with."""
    address = tool_address(conversation, tool)
    kind = CLIENT_TOOLS[address.kind]
    item: Item = {"id": f"{kind.id_prefix}_{name}", "type": kind.call_type, "call_id": allowed_call_id(call_id)}
    item[kind.arguments] = call_value(kind, arguments)
    if address.kind in ("function", "custom"):
        item["name"] = address.name
    if address.namespace:
        item["namespace"] = address.namespace
    if address.kind == "tool_search":
        item["execution"] = "client"
    if address.kind == "apply_patch" and status == "incomplete":
        status = "in_progress"  # the only other status of this item
    return item if address.kind == "custom" else {**item, "status": status}


def response_object(
    conversation: Conversation,
    *,
    name: str,
    model: str,
    created: int,
    output: list[Item],
    end: OutputEnd,
    usage: Usage | None,
) -> Item:
    """Build a response. It repeats fields of the client's request."""
    original = original_of(conversation)
    request = original.body if original is not None else write_request(conversation).body
    repeated = {key: default if request.get(key) is None else request[key] for key, default in _REPEATED.items()}
    repeated |= {"metadata": repeated["metadata"] or {}, "tools": repeated["tools"] or []}
    repeated["text"] = {**_TEXT_FORMAT, **(repeated["text"] or {})}
    repeated["reasoning"] = {**_REASONING, **(repeated["reasoning"] or {})}
    return {
        "id": f"resp_{item_base(name)}",
        "object": "response",
        "created_at": created,
        "status": end.status,
        "error": dict(end.error) if end.error else None,
        "incomplete_details": {"reason": end.reason} if end.reason else None,
        "model": model or conversation.model,
        "output": output,
        "usage": usage_object(usage) if usage is not None else None,
        **repeated,
    }


def usage_object(usage: Usage) -> Item:
    """Build the usage of a response."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }
