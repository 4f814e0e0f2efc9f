"""What goes back over the wire, as a value; faults are functions from one such value to another."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider import chat, errors, messages, responses
from rung.testing.provider.answers import AnswerBlock, ScriptedAnswer, answer, some_tool
from rung.testing.provider.parsed_request import LabWire, ParsedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.testing.provider.errors import RejectedRequest
    from rung.testing.provider.script import LabRule, LabScript

WIRES: Final[Mapping[LabWire, Any]] = {LabWire.MESSAGES: messages, LabWire.CHAT: chat, LabWire.RESPONSES: responses}
PATHS: Final = {
    LabWire.MESSAGES: "/v1/messages",
    LabWire.CHAT: "/v1/chat/completions",
    LabWire.RESPONSES: "/v1/responses",
}
ELSEWHERE: Final = "http://127.0.0.1:9/elsewhere"  # nobody listens there
EVENTS: Final = "text/event-stream; charset=utf-8"
PAGE: Final = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class ReplyEnding(StrEnum):
    """How a connection is left: as it should, by a reset, or closed before the promised end."""

    END = "end"
    RESET = "reset"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabReply:
    """An answer in the parts it is sent in, and everything that goes wrong on the way."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    parts: tuple[bytes, ...] = ()
    counts: tuple[int, ...] = ()  # the tokens each part brings
    stream: bool = False
    length: int | None = None  # what is promised, where that is not what comes
    head: bool = True  # False: not even the headers are sent
    delay: float = 0.0
    gap: float = 0.0
    stall_at: int | None = None  # before this part
    stall: float = 0.0
    ping: bytes = b""  # what is sent every second of a stall
    ending: ReplyEnding = ReplyEnding.END

    @property
    def at_once(self) -> bool:
        """Can it all be written now?"""
        return self.ending is ReplyEnding.END and not self.delay and not self.gap and self.stall_at is None

    def head_bytes(self) -> bytes:
        """The headers, up to where the date and the empty line follow."""
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Unknown')}", f"content-type: {self.content_type}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.stream:
            lines += ["cache-control: no-cache", "transfer-encoding: chunked"]
        else:
            length = sum(map(len, self.parts)) if self.length is None else self.length
            lines.append(f"content-length: {length}")
        return "\r\n".join(lines).encode() + b"\r\n"

    def framed(self) -> tuple[bytes, ...]:
        """The parts as they go out: chunks where it streams."""
        if not self.stream:
            return self.parts
        return tuple(b"%x\r\n%b\r\n" % (len(part), part) for part in self.parts)

    @property
    def end_bytes(self) -> bytes:
        """What follows the last part."""
        return b"0\r\n\r\n" if self.stream else b""


def refused(refusal: RejectedRequest, wire: LabWire | None = None) -> LabReply:
    """An error as an answer."""
    headers = (*refusal.headers, *request_id(wire))
    return LabReply(
        status=refusal.status, headers=headers, content_type=refusal.content_type, parts=(refusal.body,), counts=(0,)
    )


def request_id(wire: LabWire | None) -> tuple[tuple[str, str], ...]:
    """The header by which a provider's support finds a request."""
    name = "request-id" if wire is LabWire.MESSAGES else "x-request-id"
    return ((name, f"req_lab{messages.MARK}"),)


def rendered(asked: ParsedRequest, said: ScriptedAnswer) -> LabReply:
    """An answer on the wire it was asked over."""
    wire = WIRES[asked.wire]
    if not asked.stream:
        body = json.dumps(wire.whole_body(asked, said), separators=(",", ":")).encode()
        return LabReply(headers=request_id(asked.wire), parts=(body,), counts=(said.tokens,))
    events = tuple(wire.events(asked, said))
    return LabReply(
        headers=request_id(asked.wire),
        content_type=EVENTS,
        parts=tuple(part for part, _ in events),
        counts=tuple(tokens for _, tokens in events),
        stream=True,
    )


def reply_to(asked: ParsedRequest, rule: LabRule | None, script: LabScript) -> LabReply:
    """The answer to a request, with the fault it meets."""
    if rule is None:
        return rendered(asked, answer(asked, script))
    name, given = rule.fault.name, rule.given
    if name in errors.ANTHROPIC or name in {"status", "bad_gateway", "unavailable", "wall"}:
        name = "overloaded" if name == "wall" else name
        error = errors.error(asked.wire, name, given, model=asked.model, path=PATHS[asked.wire])
        return refused(error, asked.wire)
    if name == "overflow":
        return refused(errors.overflow(asked.wire, asked.tokens, asked.limit or 0, given["window"]), asked.wire)
    said = answer(asked, script)
    if name in _SAID:
        return rendered(asked, _SAID[name](asked, said, given))
    return _SENT[name](asked, rendered(asked, said), given)


def _cut_off(_: ParsedRequest, said: ScriptedAnswer, given: Mapping[str, Any]) -> ScriptedAnswer:
    return said.cut(given["after"])


def _refuses(asked: ParsedRequest, said: ScriptedAnswer, given: Mapping[str, Any]) -> ScriptedAnswer:
    after, message = given["after"], given["message"]
    begun = said.cut(after).blocks if after else ()
    if asked.wire is LabWire.MESSAGES:
        return ScriptedAnswer(blocks=begun, stop="refusal")
    words = tuple(f"{' ' if at else ''}{word}" for at, word in enumerate(message.split()))
    return ScriptedAnswer(blocks=(*begun, AnswerBlock(kind="refusal", tokens=words)), stop="refusal")


def _loops(asked: ParsedRequest, said: ScriptedAnswer, _: Mapping[str, Any]) -> ScriptedAnswer:
    call = some_tool(asked)
    return said if call is None else ScriptedAnswer(blocks=(call,), stop="tool")


def _garbles(asked: ParsedRequest, said: ScriptedAnswer, _: Mapping[str, Any]) -> ScriptedAnswer:
    """The call the model would make, else any, its arguments ended too early."""
    call = next((block for block in said.blocks if block.kind == "tool"), None) or some_tool(asked)
    if call is None:
        return said
    *first, last = call.tokens
    broken = replace(call, tokens=(*first, last[: max(len(last) - 2, 0)] or "{"))
    return ScriptedAnswer(blocks=(broken,), stop="tool")


def _says_nothing(*_: Any) -> ScriptedAnswer:
    return ScriptedAnswer(blocks=())


_SAID: Final[Mapping[str, Callable[[ParsedRequest, ScriptedAnswer, Mapping[str, Any]], ScriptedAnswer]]] = {
    "max_tokens": _cut_off,
    "refusal": _refuses,
    "loop": _loops,
    "bad_arguments": _garbles,
    "empty": _says_nothing,
}


def _place(reply: LabReply, tokens: int) -> int:
    """Up to which part it takes for so many tokens: everything that comes before the next, never the last's end."""
    sent = 0
    for at, number in enumerate(reply.counts):
        if number and sent >= tokens >= 0:
            return at
        sent += number
    last = max((at for at, number in enumerate(reply.counts) if number), default=0)
    return last + 1


def _halved(reply: LabReply) -> LabReply:
    """A whole body in two parts, the length of both promised."""
    body = b"".join(reply.parts)
    half = len(body) // 2
    return replace(reply, parts=(body[:half], body[half:]), counts=(0, 0), length=len(body))


def _breaks(_: ParsedRequest, reply: LabReply, given: Mapping[str, Any]) -> LabReply:
    ending = ReplyEnding(given["how"])
    if not reply.stream:
        reply = _halved(reply)
        return replace(reply, parts=reply.parts[:1], counts=(0,), ending=ending)
    at = _place(reply, given["after"])
    return replace(reply, parts=reply.parts[:at], counts=reply.counts[:at], ending=ending)


def _stops(_: ParsedRequest, reply: LabReply, given: Mapping[str, Any]) -> LabReply:
    at = _place(reply, given["after"])
    return replace(reply, parts=reply.parts[:at], counts=reply.counts[:at])


def _stalls(asked: ParsedRequest, reply: LabReply, given: Mapping[str, Any]) -> LabReply:
    ping = {LabWire.MESSAGES: messages.PING}.get(asked.wire, b": ping\n\n") if given["pings"] and reply.stream else b""
    at = _place(reply, given["after"]) if reply.stream else 1
    reply = reply if reply.stream else _halved(reply)
    return replace(reply, stall_at=at, stall=given["seconds"], ping=ping)


def _errs(asked: ParsedRequest, reply: LabReply, given: Mapping[str, Any]) -> LabReply:
    body = errors.inside(asked.wire, given["error"], given, model=asked.model)
    if not reply.stream:
        return replace(reply, parts=(json.dumps(body).encode(),))
    at = _place(reply, given["after"])
    parts = (*reply.parts[:at], *_error_events(asked, body, at))
    return replace(reply, parts=parts, counts=reply.counts[:at] + (0,) * (len(parts) - at))


def _error_events(asked: ParsedRequest, body: dict[str, Any], number: int) -> tuple[bytes, ...]:
    if asked.wire is LabWire.MESSAGES:
        return (messages.event("error", body),)
    if asked.wire is LabWire.CHAT:
        return (chat.data(body),)
    error = body["error"]
    failed = responses.failed_body(asked, error["code"] or "server_error", error["message"])
    return (
        responses.event("error", {**body, "sequence_number": number}),
        responses.event("response.failed", {"response": failed, "sequence_number": number + 1}),
    )


def _breaks_off(_: ParsedRequest, reply: LabReply, given: Mapping[str, Any]) -> LabReply:
    if not reply.stream:
        body = b"".join(reply.parts)
        return replace(reply, parts=(body[: len(body) // 2],))
    at = _place(reply, given["after"])
    broken = reply.parts[min(at, len(reply.parts) - 1)].rstrip()
    parts = (*reply.parts[:at], broken[: len(broken) * 2 // 3] + b"\n\n")
    return replace(reply, parts=parts, counts=(*reply.counts[:at], 0))


_SENT: Final[Mapping[str, Callable[[ParsedRequest, LabReply, Mapping[str, Any]], LabReply]]] = {
    "redirect": lambda _, reply, given: LabReply(
        status=307, headers=(*reply.headers, ("location", given["to"] or ELSEWHERE))
    ),
    "reset": lambda _, reply, __: replace(reply, head=False, parts=(), counts=(), ending=ReplyEnding.RESET),
    "reset_headers": lambda _, reply, __: replace(
        reply, parts=(), counts=(), length=sum(map(len, reply.parts)), ending=ReplyEnding.RESET
    ),
    "slow": lambda _, reply, given: replace(reply, delay=given["seconds"]),
    "stall": _stalls,
    "cut": _breaks,
    "no_end": _stops,
    "stream_error": _errs,
    "truncated_json": _breaks_off,
    "wrong_type": lambda _, __, ___: LabReply(content_type="text/html; charset=utf-8", parts=(PAGE,), counts=(0,)),
}
