"""Replies of the lab as values; faults are functions that transform an answer or a reply."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider import chat, errors, gemini, messages, responses
from rung.testing.provider.answers import AnswerBlock, ScriptedAnswer, build_answer, sample_tool_call
from rung.testing.provider.parsed_request import LabWire, ParsedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.testing.provider.errors import RejectedRequest
    from rung.testing.provider.script import LabRule, LabScript

WIRES: Final[Mapping[LabWire, Any]] = {
    LabWire.MESSAGES: messages,
    LabWire.CHAT: chat,
    LabWire.RESPONSES: responses,
    LabWire.GEMINI: gemini,
}
PATHS: Final = {
    LabWire.MESSAGES: "/v1/messages",
    LabWire.CHAT: "/v1/chat/completions",
    LabWire.RESPONSES: "/v1/responses",
    LabWire.GEMINI: "/v1beta/models",
}
REDIRECT_TARGET: Final = "http://127.0.0.1:9/elsewhere"  # the discard port, where nothing listens
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
HTML_PAGE: Final = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class ReplyEnding(StrEnum):
    """How a reply ends: normally, by a connection reset, or by closing early."""

    END = "end"
    RESET = "reset"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabReply:
    """An HTTP response in the parts it is sent in, with delays and transport faults."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    parts: tuple[bytes, ...] = ()
    counts: tuple[int, ...] = ()  # tokens in each part
    stream: bool = False
    length: int | None = None  # declared content-length, if it differs from the actual length
    head: bool = True  # False: no headers are sent
    delay: float = 0.0
    gap: float = 0.0
    stall_at: int | None = None  # index of the part before which the stall begins
    stall: float = 0.0
    ping: bytes = b""  # sent every second of a stall
    ending: ReplyEnding = ReplyEnding.END

    @property
    def is_immediate(self) -> bool:
        """Return whether the reply can be written at once."""
        return self.ending is ReplyEnding.END and not self.delay and not self.gap and self.stall_at is None

    def head_bytes(self) -> bytes:
        """Return status line and headers, without the date and the blank line."""
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Unknown')}", f"content-type: {self.content_type}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.stream:
            lines += ["cache-control: no-cache", "transfer-encoding: chunked"]
        else:
            length = sum(map(len, self.parts)) if self.length is None else self.length
            lines.append(f"content-length: {length}")
        return "\r\n".join(lines).encode() + b"\r\n"

    def framed(self) -> tuple[bytes, ...]:
        """Return the parts as sent; HTTP chunks if the reply is a stream."""
        if not self.stream:
            return self.parts
        return tuple(b"%x\r\n%b\r\n" % (len(part), part) for part in self.parts)

    @property
    def end_bytes(self) -> bytes:
        """Return the bytes after the last part."""
        return b"0\r\n\r\n" if self.stream else b""


def error_reply(rejection: RejectedRequest, wire: LabWire | None = None) -> LabReply:
    """Return the reply for an error."""
    headers = (*rejection.headers, *request_id(wire))
    return LabReply(
        status=rejection.status,
        headers=headers,
        content_type=rejection.content_type,
        parts=(rejection.body,),
        counts=(0,),
    )


def request_id(wire: LabWire | None) -> tuple[tuple[str, str], ...]:
    """Return the provider's request id header."""
    name = "request-id" if wire is LabWire.MESSAGES else "x-request-id"
    return ((name, f"req_lab{messages.ID_PLACEHOLDER}"),)


def render(request: ParsedRequest, answer: ScriptedAnswer) -> LabReply:
    """Encode an answer in the request's API."""
    wire = WIRES[request.wire]
    if not request.stream:
        body = json.dumps(wire.response_body(request, answer), separators=(",", ":")).encode()
        return LabReply(headers=request_id(request.wire), parts=(body,), counts=(answer.tokens,))
    events = tuple(wire.events(request, answer))
    return LabReply(
        headers=request_id(request.wire),
        content_type=EVENT_STREAM,
        parts=tuple(part for part, _ in events),
        counts=tuple(tokens for _, tokens in events),
        stream=True,
    )


def reply_to(request: ParsedRequest, rule: LabRule | None, script: LabScript) -> LabReply:
    """Return the reply to a request, with the fault of a rule."""
    if rule is None:
        return render(request, build_answer(request, script))
    name, parameters = rule.fault.name, rule.parameters
    if name in errors.ANTHROPIC or name in {"status", "bad_gateway", "unavailable", "wall"}:
        name = "overloaded" if name == "wall" else name
        error = errors.error_response(request.wire, name, parameters, model=request.model, path=PATHS[request.wire])
        return error_reply(error, request.wire)
    if name == "overflow":
        return error_reply(
            errors.context_overflow(request.wire, request.tokens, request.limit or 0, parameters["window"]),
            request.wire,
        )
    answer = build_answer(request, script)
    if name in _ANSWER_FAULTS:
        return render(request, _ANSWER_FAULTS[name](request, answer, parameters))
    return _REPLY_FAULTS[name](request, render(request, answer), parameters)


def _truncate_answer(_: ParsedRequest, answer: ScriptedAnswer, parameters: Mapping[str, Any]) -> ScriptedAnswer:
    return answer.cut(parameters["after"])


def _refuse(request: ParsedRequest, answer: ScriptedAnswer, parameters: Mapping[str, Any]) -> ScriptedAnswer:
    after, message = parameters["after"], parameters["message"]
    begun = answer.cut(after).blocks if after else ()
    if request.wire in {LabWire.MESSAGES, LabWire.GEMINI}:
        return ScriptedAnswer(blocks=begun, stop="refusal")
    words = tuple(f"{' ' if at else ''}{word}" for at, word in enumerate(message.split()))
    return ScriptedAnswer(blocks=(*begun, AnswerBlock(kind="refusal", tokens=words)), stop="refusal")


def _repeat_tool_call(request: ParsedRequest, answer: ScriptedAnswer, _: Mapping[str, Any]) -> ScriptedAnswer:
    call = sample_tool_call(request)
    return answer if call is None else ScriptedAnswer(blocks=(call,), stop="tool")


def _truncate_arguments(request: ParsedRequest, answer: ScriptedAnswer, _: Mapping[str, Any]) -> ScriptedAnswer:
    """Return the model's tool call, else a sample call, with truncated arguments."""
    call = next((block for block in answer.blocks if block.kind == "tool"), None) or sample_tool_call(request)
    if call is None:
        return answer
    *first, last = call.tokens
    broken = replace(call, tokens=(*first, last[: max(len(last) - 2, 0)] or "{"))
    return ScriptedAnswer(blocks=(broken,), stop="tool")


def _empty_answer(*_: Any) -> ScriptedAnswer:
    return ScriptedAnswer(blocks=())


_ANSWER_FAULTS: Final[Mapping[str, Callable[[ParsedRequest, ScriptedAnswer, Mapping[str, Any]], ScriptedAnswer]]] = {
    "max_tokens": _truncate_answer,
    "refusal": _refuse,
    "loop": _repeat_tool_call,
    "bad_arguments": _truncate_arguments,
    "empty": _empty_answer,
}


def _parts_for_tokens(reply: LabReply, tokens: int) -> int:
    """Return the number of parts that contain this many tokens, without the events after the last token."""
    sent = 0
    for at, number in enumerate(reply.counts):
        if number and sent >= tokens >= 0:
            return at
        sent += number
    last = max((at for at, number in enumerate(reply.counts) if number), default=0)
    return last + 1


def _split_in_half(reply: LabReply) -> LabReply:
    """Split an unstreamed body into two parts, with the content-length of both."""
    body = b"".join(reply.parts)
    half = len(body) // 2
    return replace(reply, parts=(body[:half], body[half:]), counts=(0, 0), length=len(body))


def _cut_connection(_: ParsedRequest, reply: LabReply, parameters: Mapping[str, Any]) -> LabReply:
    ending = ReplyEnding(parameters["how"])
    if not reply.stream:
        reply = _split_in_half(reply)
        return replace(reply, parts=reply.parts[:1], counts=(0,), ending=ending)
    at = _parts_for_tokens(reply, parameters["after"])
    return replace(reply, parts=reply.parts[:at], counts=reply.counts[:at], ending=ending)


def _omit_end(_: ParsedRequest, reply: LabReply, parameters: Mapping[str, Any]) -> LabReply:
    at = _parts_for_tokens(reply, parameters["after"])
    return replace(reply, parts=reply.parts[:at], counts=reply.counts[:at])


def _stall(request: ParsedRequest, reply: LabReply, parameters: Mapping[str, Any]) -> LabReply:
    ping = (
        {LabWire.MESSAGES: messages.PING, LabWire.GEMINI: gemini.PING}.get(request.wire, b": ping\n\n")
        if parameters["pings"] and reply.stream
        else b""
    )
    at = _parts_for_tokens(reply, parameters["after"]) if reply.stream else 1
    reply = reply if reply.stream else _split_in_half(reply)
    return replace(reply, stall_at=at, stall=parameters["seconds"], ping=ping)


def _inject_error(request: ParsedRequest, reply: LabReply, parameters: Mapping[str, Any]) -> LabReply:
    body = errors.embedded_error(request.wire, parameters["error"], parameters, model=request.model)
    if not reply.stream:
        return replace(reply, parts=(json.dumps(body).encode(),))
    at = _parts_for_tokens(reply, parameters["after"])
    parts = (*reply.parts[:at], *_error_events(request, body, at))
    return replace(reply, parts=parts, counts=reply.counts[:at] + (0,) * (len(parts) - at))


def _error_events(request: ParsedRequest, body: dict[str, Any], number: int) -> tuple[bytes, ...]:
    if request.wire is LabWire.MESSAGES:
        return (messages.event("error", body),)
    if request.wire is LabWire.CHAT:
        return (chat.data(body),)
    if request.wire is LabWire.GEMINI:
        return (gemini.data(body),)
    error = body["error"]
    failed = responses.failed_body(request, error["code"] or "server_error", error["message"])
    return (
        responses.event("error", {**body, "sequence_number": number}),
        responses.event("response.failed", {"response": failed, "sequence_number": number + 1}),
    )


def _truncate_json(_: ParsedRequest, reply: LabReply, parameters: Mapping[str, Any]) -> LabReply:
    if not reply.stream:
        body = b"".join(reply.parts)
        return replace(reply, parts=(body[: len(body) // 2],))
    at = _parts_for_tokens(reply, parameters["after"])
    broken = reply.parts[min(at, len(reply.parts) - 1)].rstrip()
    parts = (*reply.parts[:at], broken[: len(broken) * 2 // 3] + b"\n\n")
    return replace(reply, parts=parts, counts=(*reply.counts[:at], 0))


_REPLY_FAULTS: Final[Mapping[str, Callable[[ParsedRequest, LabReply, Mapping[str, Any]], LabReply]]] = {
    "redirect": lambda _, reply, parameters: LabReply(
        status=307, headers=(*reply.headers, ("location", parameters["to"] or REDIRECT_TARGET))
    ),
    "reset": lambda _, reply, __: replace(reply, head=False, parts=(), counts=(), ending=ReplyEnding.RESET),
    "reset_headers": lambda _, reply, __: replace(
        reply, parts=(), counts=(), length=sum(map(len, reply.parts)), ending=ReplyEnding.RESET
    ),
    "slow": lambda _, reply, parameters: replace(reply, delay=parameters["seconds"]),
    "stall": _stall,
    "cut": _cut_connection,
    "no_end": _omit_end,
    "stream_error": _inject_error,
    "truncated_json": _truncate_json,
    "wrong_type": lambda _, __, ___: LabReply(content_type="text/html; charset=utf-8", parts=(HTML_PAGE,), counts=(0,)),
}
