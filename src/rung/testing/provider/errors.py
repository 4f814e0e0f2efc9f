"""Error responses with each provider's exact messages, because agents and SDKs match on them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.testing.provider.google_errors import GOOGLE, GoogleErrorBody, google_body, google_json, invalid_argument
from rung.testing.provider.parsed_request import LabWire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.testing.provider.parsed_request import InvalidRequest


class ErrorBody(NamedTuple):
    """Anthropic error: `type` and `message` of its body."""

    status: int
    type: str
    message: str


class OpenAIErrorBody(NamedTuple):
    """OpenAI error: the four fields of its body."""

    status: int
    type: str
    message: str
    param: str | None = None
    code: str | None = None


_PROXY_TEXT: Final = "upstream connect error or disconnect/reset before headers. reset reason: connection termination"
_INVALID_KEY: Final = (
    "Incorrect API key provided: sk-lab. You can find your API key at https://platform.openai.com/account/api-keys."
)
_PROXY_PAGE: Final = (
    "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
    "<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
)

ANTHROPIC: Final[Mapping[str, ErrorBody]] = {
    "bad_request": ErrorBody(400, "invalid_request_error", "messages.0.content.0.text.text: Field required"),
    "quota": ErrorBody(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
        "purchase credits.",
    ),
    "spend_limit": ErrorBody(
        400,
        "invalid_request_error",
        "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.",
    ),
    "unauthorized": ErrorBody(401, "authentication_error", "invalid x-api-key"),
    "payment": ErrorBody(402, "billing_error", "There is an issue with your billing or payment information."),
    "forbidden": ErrorBody(
        403, "permission_error", "Your API key does not have permission to use the specified resource."
    ),
    "not_found": ErrorBody(404, "not_found_error", "Not Found"),
    "model_gone": ErrorBody(404, "not_found_error", "model: {model}"),
    "request_timeout": ErrorBody(408, "timeout_error", "Request timed out"),
    "too_large": ErrorBody(413, "request_too_large", "Request exceeds the maximum size"),
    "unprocessable": ErrorBody(422, "invalid_request_error", "Unprocessable Entity"),
    "rate_limit": ErrorBody(
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50 requests per minute (model: {model}). For "
        "details, refer to: https://docs.claude.com/en/api/rate-limits.",
    ),
    "server_error": ErrorBody(500, "api_error", "Internal server error"),
    "gateway_timeout": ErrorBody(504, "timeout_error", "The request took too long to process."),
    "overloaded": ErrorBody(529, "overloaded_error", "Overloaded"),
}

_SERVER_ERROR: Final = "The server had an error while processing your request. Sorry about that!"
OPENAI: Final[Mapping[str, OpenAIErrorBody]] = {
    "bad_request": OpenAIErrorBody(
        400,
        "invalid_request_error",
        "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer "
        "instead.",
        "messages[0].content",
        "invalid_type",
    ),
    "quota": OpenAIErrorBody(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
        None,
        "insufficient_quota",
    ),
    "spend_limit": OpenAIErrorBody(
        429, "invalid_request_error", "Billing hard limit has been reached.", None, "billing_hard_limit_reached"
    ),
    "unauthorized": OpenAIErrorBody(401, "invalid_request_error", _INVALID_KEY, None, "invalid_api_key"),
    "payment": OpenAIErrorBody(402, "billing_error", "Insufficient credits. Add more to go on.", None, "402"),
    "forbidden": OpenAIErrorBody(
        403,
        "invalid_request_error",
        "You have insufficient permissions for this operation. Missing scopes: model.request.",
    ),
    "not_found": OpenAIErrorBody(404, "invalid_request_error", "Invalid URL (POST {path})"),
    "model_gone": OpenAIErrorBody(
        404,
        "invalid_request_error",
        "The model `{model}` does not exist or you do not have access to it.",
        None,
        "model_not_found",
    ),
    "request_timeout": OpenAIErrorBody(408, "server_error", "Request timed out.", None, "request_timeout"),
    "too_large": OpenAIErrorBody(413, "invalid_request_error", "Request entity too large", None, "request_too_large"),
    "unprocessable": OpenAIErrorBody(422, "invalid_request_error", "Unprocessable Entity"),
    "rate_limit": OpenAIErrorBody(
        429,
        "requests",
        "Rate limit reached for {model} in organization org-lab on requests per min (RPM): Limit 3, Used 3, Requested "
        "1.{wait} Visit https://platform.openai.com/account/rate-limits to learn more.",
        None,
        "rate_limit_exceeded",
    ),
    "server_error": OpenAIErrorBody(500, "server_error", _SERVER_ERROR),
    "gateway_timeout": OpenAIErrorBody(504, "server_error", "Gateway Timeout"),
    "overloaded": OpenAIErrorBody(
        503, "server_error", "The engine is currently overloaded, please try again later", None, "server_overloaded"
    ),
}

STATUSES: Final[Mapping[int, str]] = {
    400: "bad_request", 401: "unauthorized", 402: "payment", 403: "forbidden", 404: "not_found",
    408: "request_timeout", 413: "too_large", 422: "unprocessable", 429: "rate_limit", 500: "server_error",
    502: "bad_gateway", 503: "unavailable", 504: "gateway_timeout", 529: "overloaded",
}  # fmt: skip
_TITLES: Final = {
    502: "502 Bad Gateway", 503: "503 Service Temporarily Unavailable", 520: "520: Web server is returning an unknown error",
    521: "521: Web server is down", 522: "522: Connection timed out", 523: "523: Origin is unreachable",
    524: "524: A timeout occurred", 530: "530: Origin DNS error",
}  # fmt: skip


class RejectedRequest(NamedTuple):
    """An error response: status, extra headers, content type and body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content_type: str
    body: bytes


def error_response(
    wire: LabWire, name: str, parameters: Mapping[str, Any], *, model: str = "", path: str = ""
) -> RejectedRequest:
    """Build an error response of a provider; `given` may set status, message, retry_after and its form."""
    headers, wait_text = _retry_after(wire, parameters)
    status = parameters.get("status")
    if name == "bad_gateway" or (name == "status" and status in _TITLES and status not in STATUSES):
        status = status or 502
        return RejectedRequest(
            status, headers, "text/html", _PROXY_PAGE.format(title=_TITLES.get(status, str(status))).encode()
        )
    if name == "unavailable":
        return RejectedRequest(status or 503, headers, "text/plain", _PROXY_TEXT.encode())
    if name == "status":
        name = STATUSES.get(status or 500, "bad_request" if (status or 500) < 500 else "server_error")  # noqa: PLR2004  # client or server error
        return error_response(wire, name, parameters, model=model, path=path)
    template = _template(wire, name)
    message = parameters.get("message") or _fill(template.message, model, path, wait_text)
    if isinstance(template, ErrorBody):
        body = _anthropic(template.type, message)
    elif isinstance(template, GoogleErrorBody):
        body = google_json(template._replace(message=message, status=status or template.status), parameters)
    else:
        body = _openai(template._replace(message=message))
    return RejectedRequest(status or template.status, headers, "application/json", body)


def _template(wire: LabWire, name: str) -> ErrorBody | OpenAIErrorBody | GoogleErrorBody:
    if wire is LabWire.GEMINI:
        return GOOGLE[name]
    return ANTHROPIC[name] if wire is LabWire.MESSAGES else OPENAI[name]


def _fill(message: str, model: str, path: str, wait: str) -> str:
    filled = message.replace("{model}", model).replace("{path}", path)
    return filled.replace("{wait}", wait) if "{wait}" in message else filled + wait


def invalid_request(wire: LabWire, problem: InvalidRequest, status: int = 400) -> RejectedRequest:
    """Build the response to an invalid request."""
    if wire is LabWire.MESSAGES:
        body = _anthropic("invalid_request_error", problem.message)
    elif wire is LabWire.GEMINI:
        body = invalid_argument(problem.message)
    else:
        body = _openai(OpenAIErrorBody(status, "invalid_request_error", problem.message, problem.param, problem.code))
    return RejectedRequest(status, (), "application/json", body)


def embedded_error(wire: LabWire, name: str, parameters: Mapping[str, Any], *, model: str = "") -> dict[str, Any]:
    """Build the body of an error that occurs inside a response of status 200."""
    template = _template(wire, name)
    message = parameters.get("message") or _fill(template.message, model, "", "")
    if isinstance(template, ErrorBody):
        body: dict[str, Any] = json.loads(_anthropic(template.type, message))
    elif isinstance(template, GoogleErrorBody):
        body = google_body(template._replace(message=message), parameters)
    else:
        body = json.loads(_openai(template._replace(message=message)))
    return body


def _anthropic(kind: str, message: str) -> bytes:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_lab" + "@" * 19}
    return json.dumps(body, separators=(",", ":")).encode()


def _openai(template: OpenAIErrorBody) -> bytes:
    fields = {"message": template.message, "type": template.type, "param": template.param, "code": template.code}
    return json.dumps({"error": fields}, indent=2).encode()


def _retry_after(wire: LabWire, parameters: Mapping[str, Any]) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the retry delay as headers and as message text."""
    seconds = parameters.get("retry_after")
    if seconds is None:
        return (), ""
    form = parameters.get("form", "seconds")
    if form == "text":
        return (), f" Please try again in {seconds:g}s."
    now = datetime.now(UTC)
    then = now + timedelta(seconds=seconds)
    headers = {
        "seconds": (("retry-after", f"{seconds:g}"),),
        "ms": (("retry-after-ms", f"{seconds * 1000:g}"),),
        "date": (("retry-after", format_datetime(then, usegmt=True)),),
        "reset": _reset(wire, seconds, then),
    }
    return headers[form], ""


def _reset(wire: LabWire, seconds: float, then: datetime) -> tuple[tuple[str, str], ...]:
    """Return rate limit headers with nothing remaining and the reset time."""
    if wire is LabWire.MESSAGES:
        at = then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        kind = "anthropic-ratelimit-requests"
        return ((f"{kind}-limit", "50"), (f"{kind}-remaining", "0"), (f"{kind}-reset", at))
    if wire is LabWire.GEMINI:
        return ()  # the delay is in the details of the error
    kind = "x-ratelimit"
    return (
        (f"{kind}-limit-requests", "3"),
        (f"{kind}-remaining-requests", "0"),
        (f"{kind}-reset-requests", f"{seconds:g}s"),
    )


def context_overflow(wire: LabWire, tokens: int, limit: int, window: int) -> RejectedRequest:
    """Build the error for a request that exceeds the context window."""
    total = tokens + limit
    if wire is LabWire.GEMINI:
        message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return RejectedRequest(400, (), "application/json", invalid_argument(message))
    if wire is LabWire.MESSAGES:
        message = f"prompt is too long: {tokens} tokens > {window} maximum"
        if tokens <= window:
            message = (
                f"input length and `max_tokens` exceed context limit: {tokens} + {limit} > {window}, decrease input "
                "length or `max_tokens` and try again"
            )
        return RejectedRequest(400, (), "application/json", _anthropic("invalid_request_error", message))
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    if tokens <= window:
        message = (
            f"This model's maximum context length is {window} tokens. However, you requested {total} tokens ({tokens} "
            f"in the messages, {limit} in the completion). Please reduce the length of the messages or completion."
        )
    param = "messages"
    if wire is LabWire.RESPONSES:
        message = "Your input exceeds the context window of this model. Please adjust your input and try again."
        param = "input"
    template = OpenAIErrorBody(400, "invalid_request_error", message, param, "context_length_exceeded")
    return RejectedRequest(400, (), "application/json", _openai(template))


def output_limit_exceeded(wire: LabWire, model: str, limit: int, max_tokens: int) -> RejectedRequest | None:
    """Build the error for an output limit above the model's maximum; None if it is within."""
    if limit <= max_tokens:
        return None
    if wire is LabWire.GEMINI:
        message = (
            f"Unable to submit request because it has a maxOutputTokens value of {limit} but the supported range is from "
            f"1 (inclusive) to {max_tokens + 1} (exclusive). Update the value and try again."
        )
        return RejectedRequest(400, (), "application/json", invalid_argument(message))
    if wire is LabWire.MESSAGES:
        message = (
            f"max_tokens: {limit} > {max_tokens}, which is the maximum allowed number of output tokens for {model}"
        )
        return RejectedRequest(400, (), "application/json", _anthropic("invalid_request_error", message))
    message = (
        f"max_tokens is too large: {limit}. This model supports at most {max_tokens} completion tokens, whereas you "
        f"provided {limit}."
    )
    template = OpenAIErrorBody(400, "invalid_request_error", message, "max_tokens", "invalid_value")
    return RejectedRequest(400, (), "application/json", _openai(template))
