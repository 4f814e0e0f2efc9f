"""Where a request belongs, what it asks, and the answer to it made ready."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.testing.provider import chat, errors, messages, responses
from rung.testing.provider.parsed_request import InvalidRequest, LabWire, ParsedRequest
from rung.testing.provider.reply import LabReply, refused, reply_to

if TYPE_CHECKING:
    from rung.testing.provider.connection import HttpRequest
    from rung.testing.provider.script import LabScript

READERS: Final = {LabWire.MESSAGES: messages.read, LabWire.CHAT: chat.read, LabWire.RESPONSES: responses.read}
MODELS: Final = ("lab-small", "lab-large")


class PreparedReply(NamedTuple):
    """A request read once: what it asks, or why not; and its answer, ready to be sent."""

    asked: ParsedRequest | None
    refusal: LabReply | None
    head: bytes
    body: bytes
    reply: LabReply | None


def wire_of(path: str) -> LabWire | None:
    """Which of the three wires a path belongs to, whatever stands before it."""
    if path.endswith("/v1/messages"):
        return LabWire.MESSAGES
    if path.endswith("/chat/completions"):
        return LabWire.CHAT
    return LabWire.RESPONSES if path.endswith("/responses") else None


def prepare(wire: LabWire, request: HttpRequest, script: LabScript) -> PreparedReply:
    """Read a request and make its answer."""
    try:
        if request.too_large:
            return _refused(errors.error(wire, "too_large", {}), wire)
        body = json.loads(request.body)
        if not isinstance(body, dict):
            raise InvalidRequest("The request body is not a JSON object")  # noqa: TRY301  # answered like the others
        asked = READERS[wire](body)
    except ValueError as error:
        return _refused(errors.invalid(wire, InvalidRequest(f"The request body is not valid JSON: {error}")), wire)
    except InvalidRequest as problem:
        return _refused(errors.invalid(wire, problem), wire)
    refusal = _limited(asked, script)
    if refusal is not None:
        return _refused(refusal, wire, asked)
    reply = reply_to(asked, None, script)
    return PreparedReply(asked, None, reply.head_bytes(), b"".join(reply.framed()) + reply.end_bytes, reply)


def _refused(refusal: errors.RejectedRequest, wire: LabWire, asked: ParsedRequest | None = None) -> PreparedReply:
    return PreparedReply(asked, refused(refusal, wire), b"", b"", None)


def _limited(asked: ParsedRequest, script: LabScript) -> errors.RejectedRequest | None:
    """Why this model cannot take it: there is none, it has less room, it says less."""
    limits = script.limits(asked.model)
    if limits is None:
        return errors.error(asked.wire, "model_gone", {}, model=asked.model)
    if limits.window is not None and asked.tokens + (asked.limit or 0) > limits.window:
        return errors.overflow(asked.wire, asked.tokens, asked.limit or 0, limits.window)
    if limits.max_output is not None and asked.limit is not None:
        return errors.too_much_output(asked.wire, asked.model, asked.limit, limits.max_output)
    return None


def aside(request: HttpRequest, path: str, script: LabScript) -> LabReply:
    """The answer to what does not ask a model: a count, the models there are, a sign of life."""
    wire = LabWire.MESSAGES if "anthropic-version" in request.headers else LabWire.CHAT
    if request.method == "POST" and path.endswith("/messages/count_tokens"):
        return _counted(request)
    if request.method in {"GET", "HEAD"}:
        if path in {"/", "/healthz"}:
            return _plain({"lab": "ready"})
        start, found, name = path.partition("/models")
        if found and start.endswith("/v1"):
            return _models(wire, name.strip("/"), tuple(script.models) or MODELS)
    return refused(errors.error(wire, "not_found", {}, path=path), wire)


def _plain(body: Any) -> LabReply:
    return LabReply(parts=(json.dumps(body).encode(),), counts=(0,))


def _counted(request: HttpRequest) -> LabReply:
    try:
        body = json.loads(request.body)
        asked = messages.read(body if isinstance(body, dict) else {}, counting=True)
    except ValueError as error:
        problem = InvalidRequest(f"The request body is not valid JSON: {error}")
        return refused(errors.invalid(LabWire.MESSAGES, problem), LabWire.MESSAGES)
    except InvalidRequest as problem:
        return refused(errors.invalid(LabWire.MESSAGES, problem), LabWire.MESSAGES)
    return _plain({"input_tokens": asked.tokens})


def _models(wire: LabWire, name: str, known: tuple[str, ...]) -> LabReply:
    if name and name not in known:
        return refused(errors.error(wire, "model_gone", {}, model=name), wire)
    if wire is LabWire.MESSAGES:
        rows: list[dict[str, Any]] = [
            {"type": "model", "id": each, "display_name": each, "created_at": "2026-01-01T00:00:00Z"} for each in known
        ]
        ends = {"has_more": False, "first_id": known[0], "last_id": known[-1]}
        return _plain(rows[known.index(name)] if name else {"data": rows, **ends})
    rows = [{"id": each, "object": "model", "created": chat.CREATED, "owned_by": "lab"} for each in known]
    return _plain(rows[known.index(name)] if name else {"object": "list", "data": rows})
