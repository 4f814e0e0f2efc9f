"""Routing of lab requests, and preparation of their replies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.testing.provider import chat, errors, gemini, messages, responses
from rung.testing.provider.parsed_request import InvalidRequest, LabWire, ParsedRequest
from rung.testing.provider.reply import LabReply, error_reply, reply_to

if TYPE_CHECKING:
    from rung.testing.provider.connection import HttpRequest
    from rung.testing.provider.script import LabScript

PARSERS: Final = {
    LabWire.MESSAGES: messages.parse_request,
    LabWire.CHAT: chat.parse_request,
    LabWire.RESPONSES: responses.parse_request,
}
MODELS: Final = ("lab-small", "lab-large")


class PreparedReply(NamedTuple):
    """A parsed request, or its error reply, with the encoded reply; cached per request body."""

    parsed: ParsedRequest | None
    rejection: LabReply | None
    head: bytes
    body: bytes
    reply: LabReply | None


def wire_for_path(path: str) -> LabWire | None:
    """Return the API of a path, whatever its prefix; None if it has none."""
    if path.endswith("/v1/messages"):
        return LabWire.MESSAGES
    if path.endswith("/chat/completions"):
        return LabWire.CHAT
    if gemini.is_generation(path):
        return LabWire.GEMINI
    return LabWire.RESPONSES if path.endswith("/responses") else None


def prepare(wire: LabWire, request: HttpRequest, script: LabScript) -> PreparedReply:
    """Parse a request and build its reply."""
    try:
        if request.too_large:
            return _prepared_error(errors.error_response(wire, "too_large", {}), wire)
        body = json.loads(request.body)
        if not isinstance(body, dict):
            raise InvalidRequest("The request body is not a JSON object")  # noqa: TRY301  # handled like the other errors
        parsed = gemini.parse_request(body, request.target) if wire is LabWire.GEMINI else PARSERS[wire](body)
    except ValueError as error:
        return _prepared_error(
            errors.invalid_request(wire, InvalidRequest(f"The request body is not valid JSON: {error}")), wire
        )
    except InvalidRequest as problem:
        return _prepared_error(errors.invalid_request(wire, problem), wire)
    rejection = _check_limits(parsed, script)
    if rejection is not None:
        return _prepared_error(rejection, wire, parsed)
    reply = reply_to(parsed, None, script)
    return PreparedReply(parsed, None, reply.head_bytes(), b"".join(reply.framed()) + reply.end_bytes, reply)


def _prepared_error(
    rejection: errors.RejectedRequest, wire: LabWire, parsed: ParsedRequest | None = None
) -> PreparedReply:
    return PreparedReply(parsed, error_reply(rejection, wire), b"", b"", None)


def _check_limits(parsed: ParsedRequest, script: LabScript) -> errors.RejectedRequest | None:
    """Return the error if the model does not exist or its limits are exceeded."""
    limits = script.limits(parsed.model)
    if limits is None:
        return errors.error_response(parsed.wire, "model_gone", {}, model=parsed.model)
    counted = parsed.tokens + (
        0 if parsed.wire is LabWire.GEMINI else parsed.limit or 0
    )  # Google counts the input only
    if limits.window is not None and counted > limits.window:
        return errors.context_overflow(parsed.wire, parsed.tokens, parsed.limit or 0, limits.window)
    if limits.max_output is not None and parsed.limit is not None:
        return errors.output_limit_exceeded(parsed.wire, parsed.model, parsed.limit, limits.max_output)
    return None


def other_reply(request: HttpRequest, path: str, script: LabScript) -> LabReply:
    """Build the reply to other requests: token count, model list, health check."""
    wire = LabWire.MESSAGES if "anthropic-version" in request.headers else LabWire.CHAT
    if "x-goog-api-key" in request.headers or "/v1beta" in path:
        wire = LabWire.GEMINI
    if request.method == "POST" and gemini.parse_path(path)[1] == gemini.COUNT:
        return _gemini_count(request)
    if request.method == "POST" and path.endswith("/messages/count_tokens"):
        return _token_count(request)
    if request.method in {"GET", "HEAD"}:
        if path in {"/", "/healthz"}:
            return _json_reply({"lab": "ready"})
        start, found, name = path.partition("/models")
        if found and start.endswith(("/v1", "/v1beta")):
            return _models(wire, name.strip("/"), tuple(script.models) or MODELS)
    return error_reply(errors.error_response(wire, "not_found", {}, path=path), wire)


def _json_reply(body: Any) -> LabReply:
    return LabReply(parts=(json.dumps(body).encode(),), counts=(0,))


def _token_count(request: HttpRequest) -> LabReply:
    try:
        body = json.loads(request.body)
        parsed = messages.parse_request(body if isinstance(body, dict) else {}, count_only=True)
    except ValueError as error:
        problem = InvalidRequest(f"The request body is not valid JSON: {error}")
        return error_reply(errors.invalid_request(LabWire.MESSAGES, problem), LabWire.MESSAGES)
    except InvalidRequest as problem:
        return error_reply(errors.invalid_request(LabWire.MESSAGES, problem), LabWire.MESSAGES)
    return _json_reply({"input_tokens": parsed.tokens})


def _gemini_count(request: HttpRequest) -> LabReply:
    """Count the tokens of contents, or of a whole request."""
    try:
        body = json.loads(request.body)
        inner = body.get("generateContentRequest", body) if isinstance(body, dict) else {}
        parsed = gemini.parse_request(inner, request.target)
    except ValueError as error:
        problem = InvalidRequest(f"The request body is not valid JSON: {error}")
        return error_reply(errors.invalid_request(LabWire.GEMINI, problem), LabWire.GEMINI)
    except InvalidRequest as problem:
        return error_reply(errors.invalid_request(LabWire.GEMINI, problem), LabWire.GEMINI)
    return _json_reply({"totalTokens": parsed.tokens})


def _models(wire: LabWire, name: str, model_names: tuple[str, ...]) -> LabReply:
    if name and name not in model_names:
        return error_reply(errors.error_response(wire, "model_gone", {}, model=name), wire)
    if wire is LabWire.GEMINI:
        return _json_reply(
            gemini.model_row(name) if name else {"models": [gemini.model_row(each) for each in model_names]}
        )
    if wire is LabWire.MESSAGES:
        rows: list[dict[str, Any]] = [
            {"type": "model", "id": each, "display_name": each, "created_at": "2026-01-01T00:00:00Z"}
            for each in model_names
        ]
        ends = {"has_more": False, "first_id": model_names[0], "last_id": model_names[-1]}
        return _json_reply(rows[model_names.index(name)] if name else {"data": rows, **ends})
    rows = [{"id": each, "object": "model", "created": chat.CREATED, "owned_by": "lab"} for each in model_names]
    return _json_reply(rows[model_names.index(name)] if name else {"object": "list", "data": rows})
