"""Errors of Bedrock, Azure OpenAI, Gemini and Vertex AI, as they come over HTTP: their kind and their wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Kind

Headers = dict[str, str]


def kind_of(status: int, body: Any, headers: Headers | None = None, provider: str = "") -> tuple[Kind, bool]:
    facts = {"status": status, "headers": headers or {}, "body": json.dumps(body).encode()}
    failure = classify(evidence_of(facts)._replace(provider=provider))
    return failure.kind, failure.retryable


BEDROCK = [
    ("ThrottlingException", 429, "Too many requests, please wait before trying again.", Kind.RATE_LIMIT, True),
    ("ThrottlingException", 400, "Rate exceeded", Kind.RATE_LIMIT, True),
    ("ThrottlingException", 429, "Too many tokens per day, please wait.", Kind.QUOTA_EXHAUSTED, False),
    ("ServiceQuotaExceededException", 400, "Your request exceeds the service quota.", Kind.QUOTA_EXHAUSTED, False),
    ("ServiceUnavailableException", 503, "Too many connections, please wait.", Kind.OVERLOADED, True),
    ("ModelNotReadyException", 429, "The model is not ready to serve inference requests.", Kind.OVERLOADED, True),
    ("ModelTimeoutException", 408, "Processing time exceeded the model timeout length.", Kind.TIMEOUT, True),
    ("ModelErrorException", 424, "The request failed due to an error while processing.", Kind.SERVER_ERROR, True),
    ("ModelStreamErrorException", 424, "An error occurred while streaming.", Kind.SERVER_ERROR, True),
    ("InternalServerException", 500, "An internal server error occurred.", Kind.SERVER_ERROR, True),
    ("AccessDeniedException", 403, "Access denied", Kind.PERMISSION_DENIED, False),
    ("AccessDeniedException", 403, "You don't have access to the model.", Kind.MODEL_UNAVAILABLE, False),
    ("UnrecognizedClientException", 403, "The security token is invalid.", Kind.AUTH_ERROR, False),
    ("ExpiredTokenException", 403, "x", Kind.AUTH_ERROR, False),
    ("InvalidSignatureException", 403, "Signature expired: 1 is now earlier than 2", Kind.AUTH_ERROR, False),
    ("ValidationException", 400, "Input is too long for requested model.", Kind.CONTEXT_LIMIT, False),
    ("ValidationException", 400, "The provided model identifier is invalid.", Kind.MODEL_UNAVAILABLE, False),
    ("ValidationException", 400, "max_tokens: must be >= 1", Kind.INVALID_REQUEST, False),
    ("ResourceNotFoundException", 404, "The specified resource ARN was not found.", Kind.NOT_FOUND, False),
]


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
@pytest.mark.parametrize(("code", "status", "message", "kind", "retryable"), BEDROCK)
def test_bedrock(code: str, status: int, message: str, kind: Kind, retryable: bool, provider: str) -> None:
    """The code of an error is in a header of the response; its body has the message only."""
    headers = {"x-amzn-ErrorType": f"{code}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    assert kind_of(status, {"message": message}, headers, provider) == (kind, retryable)


def test_the_code_in_a_body_of_aws() -> None:
    """A code with the name of its service is read without it."""
    body = {"__type": "com.amazon.coral.service#ThrottlingException", "message": "Rate exceeded"}
    assert kind_of(400, body) == (Kind.RATE_LIMIT, True)


AZURE = [
    (404, {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}, Kind.MODEL_UNAVAILABLE),
    (
        400,
        {"code": "x", "message": "y", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        Kind.CONTENT_FILTER,
    ),
    (401, {"code": "401", "message": "Access denied due to invalid subscription key."}, Kind.AUTH_ERROR),
    (
        401,
        {"code": "PermissionDenied", "message": "The principal `x` lacks the required data action `y`."},
        Kind.PERMISSION_DENIED,
    ),
    (403, {"code": "403", "message": "Out of call volume quota."}, Kind.QUOTA_EXHAUSTED),
    (
        429,
        {"code": "NoCapacity", "message": "The system is currently experiencing high demand."},
        Kind.OVERLOADED,
    ),
]


@pytest.mark.parametrize(("status", "error", "kind"), AZURE)
def test_azure(status: int, error: dict[str, Any], kind: Kind) -> None:
    """Azure's codes and messages are read, also those of the inner error."""
    assert kind_of(status, {"error": error}, provider="openai")[0] is kind


@pytest.mark.parametrize(
    ("headers", "message", "wait"),
    [
        ({"retry-after-ms": "2500", "retry-after": "3"}, "x", 2.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "13"}, "x", 13.0),
        ({}, "You have exceeded the token rate limit. Please retry after 26 seconds.", 26.0),
    ],
)
def test_waits_of_azure(headers: Headers, message: str, wait: float) -> None:
    """The wait of a rate limit comes from the milliseconds, the spent window, or the message."""
    body = {"error": {"code": "429", "message": message}}
    failure = classify(evidence_of({"status": 429, "headers": headers, "body": json.dumps(body)}))
    assert (failure.kind, failure.retry_after) == (Kind.RATE_LIMIT, wait)


def google_error(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "status": status, "message": message, "details": list(details)}}


QUOTA = "You exceeded your current quota, please check your plan and billing details."
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}


def violation(quota_id: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}


@pytest.mark.parametrize(
    ("details", "kind", "wait"),
    [
        ([violation("GenerateRequestsPerMinutePerProjectPerModel"), RETRY], Kind.RATE_LIMIT, 34.0),
        ([violation("GenerateRequestsPerMinutePerProjectPerModel")], Kind.RATE_LIMIT, None),
        ([violation("GenerateRequestsPerDayPerProjectPerModel")], Kind.QUOTA_EXHAUSTED, None),
        # Google names some quotas by day that reopen within a minute; what it asks to wait counts.
        ([violation("GenerateRequestsPerDayPerProjectPerModel"), RETRY], Kind.RATE_LIMIT, 34.0),
    ],
)
def test_quotas_of_google(details: list[dict[str, Any]], kind: Kind, wait: float | None) -> None:
    """A quota of a minute, or one with a short wait, is a rate limit; a quota of a day without one is exhausted."""
    body = google_error(429, "RESOURCE_EXHAUSTED", QUOTA, *details)
    failure = classify(evidence_of({"status": 429, "body": json.dumps(body)}))
    assert (failure.kind, failure.retry_after) == (kind, wait)


GOOGLE = [
    (429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later.", Kind.RATE_LIMIT),
    (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", Kind.QUOTA_EXHAUSTED),
    (503, "UNAVAILABLE", "The model is overloaded.", Kind.OVERLOADED),
    (504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.", Kind.TIMEOUT),
    (500, "INTERNAL", "An internal error has occurred.", Kind.SERVER_ERROR),
    (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", Kind.AUTH_ERROR),
    (403, "PERMISSION_DENIED", "Your API key was reported as leaked.", Kind.AUTH_ERROR),
    (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.", Kind.MISSING_CREDENTIALS),
    (403, "PERMISSION_DENIED", "Permission 'x.predict' denied on resource '//y'.", Kind.PERMISSION_DENIED),
    (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", Kind.AUTH_ERROR),
    (404, "NOT_FOUND", "models/g is not found for API version v1beta.", Kind.MODEL_UNAVAILABLE),
    (404, "NOT_FOUND", "Publisher Model `projects/p/models/c` was not found.", Kind.MODEL_UNAVAILABLE),
    (400, "INVALID_ARGUMENT", "The input token count (12) exceeds the maximum number of tokens.", Kind.CONTEXT_LIMIT),
]


@pytest.mark.parametrize("is_array", [False, True], ids=["object", "array"])
@pytest.mark.parametrize(("code", "status", "message", "kind"), GOOGLE)
def test_google(code: int, status: str, message: str, kind: Kind, is_array: bool) -> None:
    """Google's statuses and messages are read, also from the array that answers a stream."""
    body = google_error(code, status, message)
    assert kind_of(code, [body] if is_array else body)[0] is kind
