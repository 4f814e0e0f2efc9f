"""Anthropic's Messages as JSON: how a rung changes a request, what an answer says of its end, how two become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import repair_history
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.wires.overlap import unsaid
from rung.wires.wire_json import part, summed, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = dict[str, Any]

STOPPED: Final = frozenset({"end_turn", "tool_use", "stop_sequence", "pause_turn", "compaction"})
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
SILENT: Final = "the answer says nothing"
_LEAST_THINKING: Final = 1_024
_TYPES: Final = {
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
    """The most tokens an answer may have."""
    value = body.get("max_tokens")
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """The same request with another limit; thinking has to fit into it."""
    made = {**body, "max_tokens": tokens}
    thinking = body.get("thinking")
    if isinstance(thinking, Mapping) and isinstance(thinking.get("budget_tokens"), int):
        room = max(_LEAST_THINKING, tokens - 1)
        made["thinking"] = {**thinking, "budget_tokens": min(thinking["budget_tokens"], room)}
    return made


def with_model(body: Body, model: str) -> Body:
    """The same request for another model: what only the former one can read is left out, the history is mended."""
    made = {**body, "model": model, "messages": repair_history([_thoughtless(message) for message in history(body)])}
    if _in_a_turn(body):
        made.pop("thinking", None)  # a turn that is under way without thoughts may not be asked for them
    return made


def repaired(body: Body) -> Body:
    """The same request with its history mended: calls and results paired, nothing empty, thoughts as they must be."""
    messages = [message for message in repair_history(history(body)) if message.get("content") not in ("", [], None)]
    made = {**body, "messages": messages}
    return made if messages != body.get("messages") else with_model(body, str(body.get("model", "")))


def resumed(body: Body, words: str) -> Body:
    """The same request with a further turn of the user's; assistant prefill is refused by current models."""
    return {**body, "messages": [*history(body), {"role": "user", "content": words}]}


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """The same request with another conversation; calls and results are paired."""
    return {**body, "messages": repair_history(messages)}


def asking(model: str, words: str, tokens: int) -> Body:
    """A request of our own."""
    return {"model": model, "max_tokens": tokens, "messages": [{"role": "user", "content": words}]}


def said(answer: Body) -> str:
    """The words of an answer."""
    return "".join(block.get("text", "") for block in _blocks(answer) if block.get("type") == "text")


def called(answer: Body) -> list[tuple[str, object]]:
    """The tools an answer calls, and with what."""
    return [(str(b.get("name")), b.get("input")) for b in _blocks(answer) if b.get("type") == "tool_use"]


def tools(body: Body) -> dict[str, Any]:
    """The schemas of the tools there are, by name."""
    given = body.get("tools")
    found = [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []
    return {str(tool.get("name")): tool.get("input_schema") for tool in found}


def found(answer: Body) -> Evidence | None:
    """What is wrong with a whole answer; None if it is good."""
    stop = answer.get("stop_reason")
    if answer.get("type") != "message" or not isinstance(answer.get("content"), list) or not isinstance(stop, str):
        return Evidence(text="the answer is no whole message", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    if stop not in STOPPED:
        return Evidence(text=f"the answer ended with {stop}", code=stop, phase=Phase.RESULT)
    blocks = _blocks(answer)
    if stop == "end_turn" and not any(block.get("type") not in _THINKING for block in blocks):
        return Evidence(text=SILENT, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
    for block in blocks:
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), Mapping):
            text = f"the arguments of the call of {block.get('name')} are not a JSON object"
            return Evidence(text=text, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
    return None


def joined(parts: Sequence[Body]) -> Body:
    """One answer of several, each of which goes on where the one before was cut."""
    whole = dict(parts[0])
    for piece in parts[1:]:
        blocks = [block for block in _blocks(piece) if block.get("type") not in _THINKING]
        begun = [block for block in _blocks(whole) if block.get("type") != "tool_use"]  # it was cut in one
        whole["content"] = _continued(begun, blocks)
        whole["usage"] = summed(part(whole, "usage"), part(piece, "usage"))
        whole |= {key: piece.get(key) for key in ("stop_reason", "stop_sequence")}
    return whole


def error(status: int, message: str) -> Body:
    """An error of ours in the provider's own shape."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004  # HTTP
    return {"type": "error", "error": {"type": kind, "message": message}}


def tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens in and out, of a usage."""
    went_in = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(whole_number(usage.get(key)) for key in went_in), whole_number(usage.get("output_tokens"))


def _continued(before: list[Body], after: list[Body]) -> list[Body]:
    if before and after and before[-1].get("type") == after[0].get("type") == "text":
        said_before, more = str(before[-1].get("text", "")), str(after[0].get("text", ""))
        text = {**before[-1], "text": said_before + unsaid(said_before, more)}
        return [*before[:-1], text, *after[1:]]
    return [*before, *after]


def history(body: Body) -> list[Body]:
    """The conversation of a request."""
    messages = body.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _blocks(message: Mapping[str, Any]) -> list[Body]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _thoughtless(message: Body) -> Body:
    """The message without thoughts: their signatures are another model's."""
    if not any(block.get("type") in _THINKING for block in _blocks(message)):
        return message
    left = [block for block in _blocks(message) if block.get("type") not in _THINKING]
    return {**message, "content": left or [{"type": "text", "text": "…"}]}


def may_be_silent(body: Body) -> bool:
    """May an answer say nothing? After the results of its calls a model may have nothing to add."""
    return _in_a_turn(body)


def _in_a_turn(body: Body) -> bool:
    """Is it the model's move in the middle of a turn, with results of its calls?"""
    messages = history(body)
    return bool(messages) and any(block.get("type") == "tool_result" for block in _blocks(messages[-1]))
