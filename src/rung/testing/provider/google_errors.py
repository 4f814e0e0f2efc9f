"""Errors of Google's APIs: their messages, and their details, in which Google gives the retry delay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    Detail = Mapping[str, Any]


class GoogleErrorBody(NamedTuple):
    """Google error: `type` is the name of its status, `reason` and `quota` are in its details."""

    status: int
    type: str
    message: str
    reason: str = ""
    quota: str = ""  # id of the quota that is exceeded


_DOCS: Final = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: "
    "generativelanguage.googleapis.com/generate_content_{tier}_requests, limit: {limit}, model: {model}"
)
GOOGLE: Final[Mapping[str, GoogleErrorBody]] = {
    "bad_request": GoogleErrorBody(
        400, "INVALID_ARGUMENT", "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n"
    ),
    "quota": GoogleErrorBody(
        429,
        "RESOURCE_EXHAUSTED",
        _DOCS.replace("{tier}", "free_tier").replace("{limit}", "250"),
        quota="GenerateRequestsPerDayPerProjectPerModel-FreeTier",
    ),
    "spend_limit": GoogleErrorBody(
        429,
        "RESOURCE_EXHAUSTED",
        "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your "
        "project and billing.",
    ),
    "unauthorized": GoogleErrorBody(
        400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID"
    ),
    "payment": GoogleErrorBody(
        402, "FAILED_PRECONDITION", "This API method requires billing to be enabled.", reason="BILLING_DISABLED"
    ),
    "forbidden": GoogleErrorBody(403, "PERMISSION_DENIED", "The caller does not have permission"),
    "not_found": GoogleErrorBody(404, "NOT_FOUND", "Requested entity was not found."),
    "model_gone": GoogleErrorBody(
        404,
        "NOT_FOUND",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels "
        "to see the list of available models and their supported methods.",
    ),
    "request_timeout": GoogleErrorBody(408, "DEADLINE_EXCEEDED", "The request timed out."),
    "too_large": GoogleErrorBody(
        413, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 33554432 bytes. The request is too large."
    ),
    "unprocessable": GoogleErrorBody(422, "INVALID_ARGUMENT", "Unprocessable Entity"),
    "rate_limit": GoogleErrorBody(
        429,
        "RESOURCE_EXHAUSTED",
        _DOCS.replace("{tier}", "paid_tier").replace("{limit}", "50 per minute"),
        quota="GenerateRequestsPerMinutePerProjectPerModel",
    ),
    "server_error": GoogleErrorBody(
        500,
        "INTERNAL",
        "An internal error has occurred. Please retry or report in "
        "https://developers.generativeai.google/guide/troubleshooting",
    ),
    "gateway_timeout": GoogleErrorBody(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    "overloaded": GoogleErrorBody(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_TYPE: Final = "type.googleapis.com/google.rpc."


def google_body(template: GoogleErrorBody, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an error. A retry delay in its text is not repeated in the details."""
    error: dict[str, Any] = {"code": template.status, "message": template.message, "status": template.type}
    seconds = parameters.get("retry_after") if parameters.get("form") != "text" else None
    details = _details(template, seconds)
    return {"error": {**error, "details": details} if details else error}


def _details(template: GoogleErrorBody, seconds: float | None) -> list[Detail]:
    details: list[Detail] = []
    if template.reason:
        domain = "googleapis.com"
        details.append({"@type": f"{_TYPE}ErrorInfo", "reason": template.reason, "domain": domain})
    if template.quota:
        details.append({"@type": f"{_TYPE}QuotaFailure", "violations": [{"quotaId": template.quota}]})
    if seconds is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{seconds:g}s"})
    return details


def google_json(template: GoogleErrorBody, parameters: Mapping[str, Any]) -> bytes:
    """Return an error as Google sends it."""
    return json.dumps(google_body(template, parameters), indent=2).encode()


def invalid_argument(message: str) -> bytes:
    """Return the error of an invalid request."""
    return google_json(GoogleErrorBody(400, "INVALID_ARGUMENT", message), {})
