"""Errors that a gateway or a framework relays: whose status counts, and which words are the service's own. All are ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.classify.status_text import status_in, status_of_call
from rung.core.domain.failures import Kind

K = Kind


def http(status: int, message: str, /, **error: Any) -> dict[str, Any]:
    return {"form": "http", "status": status, "body": json.dumps({"error": {"message": message, **error}})}


STATUSES = [
    ('POST "https://models.test/v1/chat": 404 Not Found {"title": "gone"}', 404),
    ("gave up: 503 Service Unavailable", 503),
    ("call failed - HTTP 429 — Too Many Requests", 429),
    ("com.shop.ai.RetryFailedException: 422", 422),
    ("com.shop.ai.RetryFailedException: 422\n    at com.shop.ai.Client.call(Client.java:7)", 422),
    ("relay of m-2: <400> BadInput: no", 400),
    ("bad value: '503 Service Unavailable'", None),
    ("we have 404 Not Allowed signs", None),
    ("StockException: 422 chairs", None),
    ("between <400> and <500>", None),
]


@pytest.mark.parametrize(("text", "status"), STATUSES)
def test_a_status_within_a_text(text: str, status: int | None) -> None:
    """A number is a status before its own reason phrase, behind an exception class, or in the brackets of a relay."""
    assert status_in(text) == status


RELAYED = [
    (http(502, "relay of m-2: <400> BadInput: the first turn has to come from a person"), K.INVALID_REQUEST, False),
    (http(500, "upstream said: Error code: 401 - no"), K.AUTH_ERROR, False),
    (http(502, "no luck", raw='{"error": {"code": 404, "message": "model m-9 does not exist"}}'), K.MODEL_UNAVAILABLE, False),
    (http(500, json.dumps({"error": {"code": 429, "message": "wait"}})), K.RATE_LIMIT, True),
    (http(402, json.dumps({"error": {"code": 500, "message": "no"}})), K.QUOTA_EXHAUSTED, False),
    (http(500, "the answer has 400 lines"), K.SERVER_ERROR, True),
    (
        "proxy.Error: {'message': 'proxy.Error: {\\'message\\': \"the field \\'seed\\' is unknown here\", \\'code\\': 400}'}",
        K.INVALID_REQUEST,
        False,
    ),
    ('Status: 400, Message: 400 "Incorrect API key. Get one at https://keys.test". Check your settings.', K.AUTH_ERROR, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), RELAYED)
def test_the_service_behind_a_gateway_decides(error: Any, kind: Kind, retryable: bool) -> None:
    """The status of the service behind a gateway counts, if the gateway's own status only says that it failed."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


WORDINGS = [
    (http(500, "Failed to parse the request body as JSON at line 3"), K.INVALID_REQUEST, False),
    ("the server cannot decode the JSON body of this call", K.INVALID_REQUEST, False),
    ("failed to parse the JSON of the answer", K.MALFORMED_OUTPUT, True),
    (http(501, "sorry, that is not built here"), K.CONFIGURATION, False),
    (http(400, "function calling is not supported by m-2"), K.CONFIGURATION, False),
    ("stream disconnected before completion: the rate limit has been hit. Try again in 9 seconds.", K.RATE_LIMIT, True),
    ("stream disconnected before completion: bye", K.STREAM_INTERRUPTED, True),
    (http(400, "Invalid tool call in the message history: arguments of find are not JSON"), K.INVALID_REQUEST, False),
    (http(400, "Invalid tool call: arguments of find are not JSON"), K.MALFORMED_OUTPUT, True),
    ({"form": "exception", "exception_type": "AI_NoObjectGeneratedError", "message": "no"}, K.MALFORMED_OUTPUT, True),
    ("temperature 参数不合法", K.INVALID_REQUEST, False),
    (http(401, "Please include your API key in the header"), K.MISSING_CREDENTIALS, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), WORDINGS)
def test_what_is_said_and_of_what(error: Any, kind: Kind, retryable: bool) -> None:
    """Words about the request, the answer, the stream and the server are told apart."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


TERSE = [
    ({"body": '{"message": ["the field seed must be an integer"], "statusCode": 400}'}, K.INVALID_REQUEST, False),
    ('service says: {"error": "?", "warnings": ["CUDA out of memory at step 3"]}', K.RESOURCE_EXHAUSTED, False),
    ("错误：调用 m-2 模型: Bad Request", K.INVALID_REQUEST, False),
    ("402 You've spent all of it", K.QUOTA_EXHAUSTED, False),
    ("KeyError: 'SHOP_API_KEY'", K.MISSING_CREDENTIALS, False),
    ("KeyError: 'price'", K.UNKNOWN, False),
    ("Not signed in to the relay", K.MISSING_CREDENTIALS, False),
    ("Your session ended. Please sign in again", K.AUTH_ERROR, False),
    ("agent stopped: exceeded maximum retries (2) for output validation", K.MALFORMED_OUTPUT, True),
    ("block_reason: SAFETY", K.CONTENT_FILTER, False),
    ("Context window is full", K.CONTEXT_LIMIT, False),
    ("this chat has outgrown the context of m-2", K.CONTEXT_LIMIT, False),
    ("your card was declined: update the payment method", K.QUOTA_EXHAUSTED, False),
    ("provider finish_reason: error", K.SERVER_ERROR, True),
    ("the backend met an unexpected condition", K.SERVER_ERROR, True),
    ({"status": 500, "body": '{"error": "no slots available"}'}, K.OVERLOADED, True),
    ("we see unusually high traffic", K.OVERLOADED, True),
    ({"status": 503, "body": "closed for emergency maintenance"}, K.SERVICE_DOWN, False),
    ("the model didn't respond within 90 seconds", K.TIMEOUT, True),
    ("The request was canceled due to the configured HttpClient.Timeout of 9 seconds elapsing.", K.TIMEOUT, True),
    ("read ENETRESET", K.NETWORK, True),
    ({"exception_type": "java.net.UnknownHostException", "message": "models.test"}, K.NETWORK, True),
    ("TypeError: Load failed", K.NETWORK, True),
    ("no chunk arrived for 30 seconds", K.STREAM_INTERRUPTED, True),
    ({"status": 410, "body": '{"detail": "This model was switched off in May"}'}, K.MODEL_UNAVAILABLE, False),
    ({"status": 403, "body": "burst rate exceeded", "provider": "new-house"}, K.RATE_LIMIT, True),
    ({"status": 500, "body": '{"error": "failed to allocate the graph buffers"}'}, K.RESOURCE_EXHAUSTED, False),
    ("le jeton d'accès a expiré", K.AUTH_ERROR, False),
    ("the frame rate exceeds that of the film", K.UNKNOWN, False),
    ("we need a break for an hour", K.UNKNOWN, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), TERSE)
def test_texts_of_few_words(error: Any, kind: Kind, retryable: bool) -> None:
    """A few words name the kind, whether they are a text, a field, a list, or a class and a value."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


FORMS = [
    ("Bad request (400): no", 400),
    ("got 502 from the relay", 502),
    ("gave up, code 429", 429),
    ("gave up, code=429", 429),
    ("Unexpected server response: 503", 503),
    ('404 error "nothing here"', 404),
    ("the call failed with a 529", 529),
    ("StatusCode(401)", 401),
    ("Response status code does not indicate success: 503 (Service Unavailable).", 503),
    ("got 503 chairs", None),
    ("error code 1015", None),
    ("code 5030", None),
    ("in 2 of (1404) cases", None),
    ("listening on 0.0.0.0:500 error free", None),
    ("no number", None),
]


@pytest.mark.parametrize(("text", "status"), FORMS)
def test_a_status_of_a_call_in_any_form(text: str, status: int | None) -> None:
    """Where a call failed, a known status is found in brackets, behind a code and before the word error."""
    assert status_of_call(text) == status


MORE = [
    ("rpc error: code = ResourceExhausted desc = no", K.RATE_LIMIT, True),
    ("rpc error: code = Unauthenticated desc = no", K.AUTH_ERROR, False),
    ("StatusCode.UNAVAILABLE: no", K.OVERLOADED, True),
    ("Names of models are a or b, but you passed c: no such model", K.MODEL_UNAVAILABLE, False),
    (http(400, "the signature must be passed back with the next turn"), K.INVALID_REQUEST, False),
    ("test_model_not_found passed", K.UNKNOWN, False),
    ("you send requests too quickly", K.RATE_LIMIT, True),
    (http(400, "at most 10 tokens per submitted batch, yours has 12"), K.INVALID_REQUEST, False),
    (http(400, "batch size is invalid, it should be no larger than 10 inputs"), K.INVALID_REQUEST, False),
    ("Your quota will reset after 9s: you have exhausted your capacity", K.RATE_LIMIT, True),
    ("Your quota will reset after 9h: you have exhausted your capacity", K.QUOTA_EXHAUSTED, False),
    ("TypeError: Invalid URL", K.CONFIGURATION, False),
    ("400 Invalid session", K.AUTH_ERROR, False),
]


@pytest.mark.parametrize(("error", "kind", "retryable"), MORE)
def test_codes_batches_and_what_was_passed(error: Any, kind: Kind, retryable: bool) -> None:
    """Codes of gRPC are codes, a batch is no prompt, and a value that was passed is no report of tests."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


STOPPED = [
    ("answer ended, finish_reason: length", K.OUTPUT_LIMIT, False),
    ("candidate 0: finish_reason is RECITATION", K.CONTENT_FILTER, False),
    ("Unhandled stop reason: MALFORMED_FUNCTION_CALL", K.MALFORMED_OUTPUT, True),
    ("the model declines to answer this", K.REFUSAL, False),
    ("your subscription lapsed in May", K.QUOTA_EXHAUSTED, False),
    ("il saldo è insufficiente", K.QUOTA_EXHAUSTED, False),
    ("дневной лимит исчерпан", K.QUOTA_EXHAUSTED, False),
    (http(403, "This model is only available on the large plan"), K.MODEL_UNAVAILABLE, False),
    (http(404, "No models installed here"), K.MODEL_UNAVAILABLE, False),
    (http(400, "文本包含违禁词"), K.CONTENT_FILTER, False),
    ("oh no, something broke on our side", K.SERVER_ERROR, True),
    ({"exception_type": "ssl.SSLEOFError", "message": "EOF occurred in violation of protocol"}, K.NETWORK, True),
    ("error reading a body from connection: bye", K.STREAM_INTERRUPTED, True),
    (http(400, "the number of answer blocks exceeds that of the messages"), K.INVALID_REQUEST, False),
    (http(400, "input + max_tokens: the tokens must be <= 8192"), K.CONTEXT_LIMIT, False),
    (http(403, "a positive balance is needed here"), K.QUOTA_EXHAUSTED, False),
    ("weekly cap hit", K.QUOTA_EXHAUSTED, False),
    ("no workers left for you", K.OVERLOADED, True),
    ("queue size limit: 9 wait already", K.OVERLOADED, True),
    ("gave up waiting for the first word", K.TIMEOUT, True),
    ("could not reach the house of models", K.NETWORK, True),
    ("models.test does not resolve", K.NETWORK, True),
    ("decoding of the event stream failed", K.STREAM_INTERRUPTED, True),
    (http(403, "该用户已被封禁"), K.AUTH_ERROR, False),
    ("the answer met the Responsible AI filters", K.CONTENT_FILTER, False),
    (http(500, "the KV cache is full"), K.RESOURCE_EXHAUSTED, False),
    ("unsupported provider: new-house", K.CONFIGURATION, False),
    ("the base URL must end with /v2", K.CONFIGURATION, False),
    ("a node upstream panicked", K.SERVER_ERROR, True),
    ("we are currently down", K.SERVICE_DOWN, True),
    ({"status": 403, "body": "<title>Access denied | models.test used Cloudflare to restrict access</title>"}, K.PERMISSION_DENIED, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), STOPPED)
def test_stop_reasons_and_refusals_in_words(error: Any, kind: Kind, retryable: bool) -> None:
    """A stop reason counts within a text, too, and so does what a plan, a proxy or a model refuses in its own words."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


TRANSIENT_OR_NOT = [
    ("Request timed out. Please check your parameters.", True),
    (http(503, "This model is only available at night; the server is overloaded, try again later"), True),
    (http(502, "the upstream answered: HTTP 529"), True),
    (http(502, "the upstream answered: HTTP 402"), False),
    (http(500, "batch worker crashed"), True),
    (http(429, "slow down", details="see https://models.test/limits"), True),
    (http(400, "the stream option takes no data"), False),
    (http(400, "stream_options cannot be used without stream"), False),
    (http(400, "timeout must be a number"), False),
    (http(404, "timeout while the file was looked up"), True),
    (http(404, "model m-9 was taken offline"), False),
    (http(503, "model m-9 is temporarily not found in the pool"), True),
    ("stream disconnected before completion: your monthly usage limit is used up", False),
    (http(501, "try again later"), False),
    (http(400, "Could not parse the JSON body of this request; please try again"), False),
    ("the batch of 20 finished with 429 tests passed", False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "retryable"), TRANSIENT_OR_NOT)
def test_advice_to_repeat_is_not_turned_by_a_word(error: Any, retryable: bool) -> None:
    """One word of the other sort does not turn the advice."""
    assert classify(error).retryable is retryable
