"""OpenAI's Responses as JSON: how a rung changes a request, what an answer says of its end, how two become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.wires.overlap import unsaid
from rung.wires.wire_json import are_arguments, parsed, part, summed, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Body = dict[str, Any]

SILENT: Final = "the answer says nothing"
_TYPES: Final = {401: "invalid_api_key", 404: "not_found", 413: "request_too_large", 429: "rate_limit_exceeded"}
_UNDER_WAY: Final = frozenset({"queued", "in_progress"})  # asked for in the background: looked up later


def limit(body: Body) -> int | None:
    """The most tokens an answer may have."""
    value = body.get("max_output_tokens")
    return value if isinstance(value, int) else None


def with_limit(body: Body, tokens: int) -> Body:
    """The same request with another limit."""
    return {**body, "max_output_tokens": tokens}


def with_model(body: Body, model: str) -> Body:
    """The same request for another model: thoughts only the former one can read are left out, calls have results."""
    items = history(body)
    left = _paired([item for item in items if item.get("type") != "reasoning"])
    return {**body, "model": model} | ({"input": left} if left != items else {})


def repaired(body: Body) -> Body:
    """The same request with its history mended."""
    items = history(body)
    left = _paired(items)
    return {**body, "input": left} if left != items else with_model(body, str(body.get("model", "")))


def resumed(body: Body, words: str) -> Body:
    """The same request with a further turn of the user's."""
    return {**body, "input": [*history(body), {"role": "user", "content": words}]}


def with_history(body: Body, messages: Sequence[Mapping[str, Any]]) -> Body:
    """The same request with another conversation; calls and results are paired."""
    return {**body, "input": _paired(messages)}


def asking(model: str, words: str, tokens: int) -> Body:
    """A request of our own."""
    return {"model": model, "max_output_tokens": tokens, "input": words}


def said(answer: Body) -> str:
    """The words of an answer."""
    return "".join(
        str(part.get("text", ""))
        for item in _output(answer)
        for part in item.get("content") or ()
        if item.get("type") == "message" and isinstance(part, dict)
    )


def called(answer: Body) -> list[tuple[str, object]]:
    """The tools an answer calls, and with what."""
    found = [item for item in _output(answer) if item.get("type") == "function_call"]
    return [(str(item.get("name")), parsed(item.get("arguments"))) for item in found]


def tools(body: Body) -> dict[str, Any]:
    """The schemas of the tools there are, by name."""
    given = body.get("tools")
    found = [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []
    return {str(tool.get("name")): tool.get("parameters") for tool in found}


def found(answer: Body) -> Evidence | None:
    """What is wrong with a whole answer; None if it is good."""
    status = answer.get("status")
    if not isinstance(answer.get("output"), list):
        return Evidence(text="the answer is no whole response", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    if status == "incomplete":
        reason = str((part(answer, "incomplete_details")).get("reason") or "incomplete")
        return Evidence(text=f"the answer ended with {reason}", code=reason, phase=Phase.RESULT)
    if status == "failed":
        error_ = part(answer, "error")
        text = str(error_.get("message") or "the response failed")
        return Evidence(text=text, code=str(error_.get("code") or "server_error"), phase=Phase.RESULT)
    if status not in (None, "completed", "cancelled", *_UNDER_WAY):
        return Evidence(text=f"the response is {status}", finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    if status == "completed" and not said(answer) and not any(_speaks(item) for item in _output(answer)):
        return Evidence(text=SILENT, finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT)
    bad = next((bad for item in _output(answer) if (bad := bad_call(item))), "")
    return Evidence(text=bad, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT) if bad else None


def _speaks(item: Mapping[str, Any]) -> bool:
    """Is there anything in an item? A message may hold a refusal; a call is always something."""
    if item.get("type") == "message":
        return any(isinstance(part, dict) and part.get("type") == "refusal" for part in item.get("content") or ())
    return item.get("type") != "reasoning"


def bad_call(item: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call."""
    if item.get("type") != "function_call" or are_arguments(item.get("arguments")):
        return ""
    return f"the arguments of the call of {item.get('name')} are not valid JSON"


def joined(parts: Sequence[Body]) -> Body:
    """One answer of several, each of which goes on where the one before was cut."""
    whole = dict(parts[0])
    for piece in parts[1:]:
        later = [item for item in _output(piece) if item.get("type") != "reasoning"]
        begun = [item for item in _output(whole) if item.get("type") != "function_call"]  # it was cut in one
        whole["output"] = _continued(begun, later)
        whole["usage"] = summed(part(whole, "usage"), part(piece, "usage"))
        whole |= {key: piece.get(key) for key in ("status", "incomplete_details", "error")}
    return whole


def error(status: int, message: str) -> Body:
    """An error of ours in the provider's own shape."""
    kind = "server_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004  # HTTP
    return {"error": {"message": message, "type": kind, "param": None, "code": _TYPES.get(status)}}


def tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens in and out, of a usage."""
    return whole_number(usage.get("input_tokens")), whole_number(usage.get("output_tokens"))


def _continued(before: list[Body], after: list[Body]) -> list[Body]:
    """Text goes on in the message it was cut in."""
    if not before or not after or not before[-1].get("type") == after[0].get("type") == "message":
        return [*before, *after]
    one, other = before[-1], after[0]
    parts, more = list(one.get("content") or ()), list(other.get("content") or ())
    if parts and more and parts[-1].get("type") == more[0].get("type") == "output_text":
        begun, rest = str(parts[-1].get("text", "")), str(more[0].get("text", ""))
        parts[-1] = {**parts[-1], "text": begun + unsaid(begun, rest)}
        more = more[1:]
    return [*before[:-1], {**one, "content": [*parts, *more], "status": other.get("status")}, *after[1:]]


def _paired(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every call with its output, every output with its call."""
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


def may_be_silent(body: Body) -> bool:
    """May an answer say nothing? After the results of its calls a model may have nothing to add."""
    items = history(body)
    return bool(items) and items[-1].get("type") == "function_call_output"


def history(body: Body) -> list[Body]:
    """The conversation of a request."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def _output(answer: Body) -> list[Body]:
    output = answer.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
