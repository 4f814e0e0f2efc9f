"""What errors mean: the same status with another sense, one sense in many words. Every text here is our own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Kind, Phase

K = Kind


def http(status: int, message: str, /, **error: Any) -> dict[str, Any]:
    return {"form": "http", "status": status, "body": json.dumps({"error": {"message": message, **error}})}


def tool(text: str, exit_code: int | None = 1) -> dict[str, Any]:
    return {"form": "tool", "body": text, "exit_code": exit_code}


def answer(text: str) -> dict[str, Any]:
    return {"form": "output", "status": 200, "body": text}


MEANINGS: list[tuple[Any, Kind, bool]] = [
    # quota and credit, under any status
    (http(400, "Your credit balance is too low to do this."), K.QUOTA_EXHAUSTED, False),
    (http(402, "Not enough credits, add more credits first"), K.QUOTA_EXHAUSTED, False),
    (http(403, "This team has used all its credits: insufficient balance"), K.QUOTA_EXHAUSTED, False),
    (http(404, "Free tier exhausted for this project"), K.QUOTA_EXHAUSTED, False),
    (http(429, "You exceeded your current quota", code="insufficient_quota"), K.QUOTA_EXHAUSTED, False),
    (http(429, "Weekly limit reached. Resets in 3 days"), K.QUOTA_EXHAUSTED, False),
    (http(429, "账户余额不足，请充值后再试"), K.QUOTA_EXHAUSTED, False),
    # Google's words
    (http(429, "Quota exceeded for metric x: 15 requests per minute", status="RESOURCE_EXHAUSTED"), K.RATE_LIMIT, True),
    (http(429, "Resource has been exhausted (check quota).", status="RESOURCE_EXHAUSTED"), K.RATE_LIMIT, True),
    (http(429, "Quota exceeded", quotaId="GenerateRequestsPerDayPerProject"), K.QUOTA_EXHAUSTED, False),
    # too much at once
    (http(403, "You have exceeded a secondary rate limit"), K.RATE_LIMIT, True),
    (http(429, "Request too large for m on tokens per min: Limit 1000, Requested 4000"), K.CONTEXT_LIMIT, False),
    (http(429, "Rate limit reached on tokens per min: Limit 1000, Used 900, Requested 400. Try again in 8s"), K.RATE_LIMIT, True),
    (http(429, "Rate limit reached: Limit 1000, Used 0, Requested 4000. Try again in 8s"), K.CONTEXT_LIMIT, False),
    ("You were rate limited. Please wait 90 hours", K.QUOTA_EXHAUSTED, False),
    # no room
    (http(429, "The model is at capacity right now"), K.OVERLOADED, True),
    (http(500, "Overloaded"), K.OVERLOADED, True),
    (http(503, "Model m-1 is currently loading"), K.OVERLOADED, True),
    ('event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', K.OVERLOADED, True),
    (http(521, "x"), K.SERVICE_DOWN, True),
    (http(200, "x") | {"body": "We are down for maintenance"}, K.SERVICE_DOWN, False),
    # a gateway's own status says more than why it could not reach the next one
    (http(503, "upstream: connection refused"), K.OVERLOADED, True),
    (http(500, "Connection error."), K.NETWORK, True),
    # refused by another name: no right, a wrong parameter, a wrapper around the class that tells
    ("Error raised by the service: An error occurred (ValidationException) when calling the X operation: Operation not allowed", K.PERMISSION_DENIED, False),
    ({"exception_type": "ValueError", "message": "raised by x: An error occurred (ThrottlingException) when calling Y"}, K.RATE_LIMIT, True),
    ("The maximum tokens you requested exceed what this model can write (2048). Use a lower value.", K.INVALID_REQUEST, False),
    ('{"name": "ThrottlingException", "$metadata": {"httpStatusCode": 429, "attempts": 2}}', K.RATE_LIMIT, True),
    ('{"name": "search", "arguments": {"statusCode": 503}}', K.OVERLOADED, True),
    ("The server is limiting requests for a moment (not your usage limit)", K.RATE_LIMIT, True),
    ({"exception_type": "ThrottlingException", "message": "Too many tokens per day, please wait"}, K.QUOTA_EXHAUSTED, False),
    ("stream disconnected before completion: error sending request for url (https://host.test/)", K.NETWORK, True),
    # what could not be started, what may not be pushed
    (tool("Failed to spawn: `x-server`\nCaused by: program not found\nMCP error -32000: Connection closed", 2), K.NOT_FOUND, False),
    (tool("npm ERR! Error: No compatible version found: thing@'^9.4.0'"), K.NOT_FOUND, False),
    (tool(" ! [remote rejected] main -> main (pre-receive hook declined)\nerror: failed to push some refs to 'x'"), K.PERMISSION_DENIED, False),
    (tool("remote: error: GH999: Protected branch update failed for refs/heads/main."), K.PERMISSION_DENIED, False),
    (tool("HttpError: Resource not accessible by integration"), K.PERMISSION_DENIED, False),
    # models
    (http(404, "The model `m-9` does not exist or you do not have access to it."), K.MODEL_UNAVAILABLE, False),
    (http(404, "model: m-9", type="not_found_error"), K.MODEL_UNAVAILABLE, False),
    (http(403, "You don't have access to the model with this id"), K.MODEL_UNAVAILABLE, False),
    (http(400, "m-9 has been deprecated, use m-10"), K.MODEL_UNAVAILABLE, False),
    (http(404, "no such page"), K.NOT_FOUND, False),
    # context overflow in many words
    (http(400, "prompt is too long: 9 tokens > 8 maximum"), K.CONTEXT_LIMIT, False),
    (http(400, "This model's maximum context length is 8 tokens"), K.CONTEXT_LIMIT, False),
    (http(400, "Input tokens exceed the configured limit of 8 tokens"), K.CONTEXT_LIMIT, False),
    (http(500, "the request exceeds the available context size, try increasing it"), K.CONTEXT_LIMIT, False),
    (http(413, "x"), K.CONTEXT_LIMIT, False),
    # keys
    (http(401, "x"), K.AUTH_ERROR, False),
    (http(400, "API key not valid. Pass a valid one.", reason="API_KEY_INVALID"), K.AUTH_ERROR, False),
    (http(403, "The security token included in the request is expired"), K.AUTH_ERROR, False),
    (http(401, "You didn't provide an API key."), K.MISSING_CREDENTIALS, False),
    (http(403, "Country, region, or territory not supported"), K.PERMISSION_DENIED, False),
    (http(403, "x"), K.PERMISSION_DENIED, False),
    # what the request is
    (http(400, "messages.2: `tool_use` ids were found without `tool_result` blocks"), K.INVALID_REQUEST, False),
    (http(400, 'Unknown name "rate limit exceeded" at messages[0]: "please wait, too many requests"'), K.INVALID_REQUEST, False),
    (http(400, "Flagged by our moderation", code="content_policy_violation"), K.CONTENT_FILTER, False),
    (http(400, "Failed to call a function", code="tool_use_failed"), K.MALFORMED_OUTPUT, True),
    (http(409, "x"), K.SERVER_ERROR, True),
    # endings
    (answer('{"stop_reason": "max_tokens"}'), K.OUTPUT_LIMIT, False),
    (answer('{"choices": [{"finish_reason": "length"}]}'), K.OUTPUT_LIMIT, False),
    (answer('{"candidates": [{"finishReason": "MAX_TOKENS"}]}'), K.OUTPUT_LIMIT, False),
    (answer('{"candidates": [{"finishReason": "SAFETY"}]}'), K.CONTENT_FILTER, False),
    (answer('{"choices": [{"finish_reason": "content_filter"}]}'), K.CONTENT_FILTER, False),
    (answer('{"stop_reason": "refusal"}'), K.REFUSAL, False),
    (answer('{"stop_reason": "pause_turn"}'), K.PARTIAL_OUTPUT, False),
    (answer('{"stop_reason": "end_turn"}'), K.UNKNOWN, False),
    (answer('{"type": "result", "subtype": "error_max_turns"}'), K.TURNS_EXHAUSTED, False),
    (answer('{"type": "result", "subtype": "success", "is_error": true, "result": "API Error: 529 Overloaded"}'), K.OVERLOADED, True),
    (answer('{"type": "result", "subtype": "success", "is_error": false, "result": "API Error: 529 is what it said"}'), K.UNKNOWN, False),
    (answer("I'm sorry, but I can't assist with that."), K.REFUSAL, False),
    (answer('{"name": "a", "items": ["b"'), K.MALFORMED_OUTPUT, True),
    (answer('[{"name": "turn_off", "arguments": {}}]'), K.MALFORMED_OUTPUT, True),
    (answer("<tool_call>turn_off</tool_call>"), K.MALFORMED_OUTPUT, True),
    (answer('[{"id": 1}]'), K.UNKNOWN, False),
    (answer("The answer is 42."), K.UNKNOWN, False),
    # the system
    (tool("cat: a.txt: No such file or directory"), K.NOT_FOUND, False),
    (tool("bash: frob: command not found", 127), K.NOT_FOUND, False),
    (tool("", 127), K.NOT_FOUND, False),
    (tool("cp: cannot create regular file '/x': Permission denied"), K.PERMISSION_DENIED, False),
    (tool("", 126), K.PERMISSION_DENIED, False),
    (tool("cp: error writing 'x': No space left on device"), K.RESOURCE_EXHAUSTED, False),
    (tool("", 137), K.RESOURCE_EXHAUSTED, False),
    (tool("", 124), K.TIMEOUT, True),
    (tool("", 130), K.UNKNOWN, False),
    (tool("", -9), K.UNKNOWN, False),
    (tool("boom", 3), K.TOOL_ERROR, False),
    (tool("sqlite3.OperationalError: database is locked"), K.TOOL_ERROR, True),
    (tool("curl: (6) Could not resolve host: x.invalid", 6), K.NETWORK, True),
    (tool("curl: (60) SSL certificate problem: self-signed certificate", 60), K.NETWORK, False),
    (tool("git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.", 128), K.AUTH_ERROR, False),
    (tool("npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://r/x"), K.NOT_FOUND, False),
    (tool("ERROR: No matching distribution found for x==9"), K.NOT_FOUND, False),
    (tool("ERROR: Cannot install a and b because these package versions have conflicting dependencies."), K.CONFIGURATION, False),
    (tool("usage: x [-h]\nx: error: unrecognized arguments: -q", 2), K.CONFIGURATION, False),
    (tool("OSError: [Errno 98] Address already in use"), K.CONFIGURATION, False),
    (tool("CONFLICT (content): Merge conflict in a.md"), K.TOOL_ERROR, False),
    (tool("1 failed, 3 passed in 0.1s\n=== short test summary info ===\nFAILED t.py::test_rate_limit_429"), K.TEST_FAILURE, False),
    (tool('Traceback (most recent call last):\n  File "a.py", line 1\nModuleNotFoundError: No module named \'x\''), K.NOT_FOUND, False),
    (tool("a.c:3:5: error: use of undeclared 'out of memory'\n    3 | char *s = \"No space left on device\";"), K.TOOL_ERROR, False),
    (tool("a.c:1:10: fatal error: x.h: No such file or directory"), K.NOT_FOUND, False),
    (tool("String to replace not found in file.", None), K.TOOL_ERROR, False),
    (tool("The user doesn't want to proceed with this tool use.", None), K.PERMISSION_DENIED, False),
    # what is quoted is not what went wrong
    (tool("429 passed in 3.1s", 0), K.UNKNOWN, False),
    (tool("12:01 INFO status=429 retrying\n12:02 INFO done", 0), K.UNKNOWN, False),
    (tool("1a2b3c fix: retry on 503 Service Unavailable\n4d5e6f test: no space left on device", 0), K.UNKNOWN, False),
    (tool("Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: bad value: '429 Too Many Requests'"), K.TOOL_ERROR, False),
    (tool('Traceback (most recent call last):\n  raise Timeout("connection refused")\nTypeError: bad operand'), K.TOOL_ERROR, False),
    ("litellm.BadRequestError: Invalid message {'role': 'user', 'content': 'what is a rate limit?'}", K.INVALID_REQUEST, False),
    # wrapped
    ("Error code: 404 - {'error': {'message': 'The model `x` does not exist', 'code': 'model_not_found'}}", K.MODEL_UNAVAILABLE, False),
    ("litellm.APIConnectionError: b'{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}'", K.OVERLOADED, True),
    ('{"error": {"message": "{\\n  \\"error\\": {\\n    \\"code\\": 400, \\"message\\": \\"API key not valid\\"}}", "code": 400}}', K.AUTH_ERROR, False),
    ("An error occurred (ThrottlingException) when calling the X operation: slow down", K.RATE_LIMIT, True),
    ("Agent stopped: [429 Too Many Requests] try later", K.RATE_LIMIT, True),
    ("HTTP 503: nothing", K.OVERLOADED, True),
    ("request failed with status code 502", K.SERVER_ERROR, True),
    ('{"message": "", "type": "upstream_error", "param": "524", "code": "bad_response_status_code"}', K.TIMEOUT, True),
]  # fmt: skip


@pytest.mark.parametrize(("trouble", "kind", "retryable"), MEANINGS, ids=[str(row[0])[-60:] for row in MEANINGS])
def test_what_it_means(trouble: Any, kind: Kind, retryable: bool) -> None:
    """Each error is named for what it says, and is repeatable only if the same request may succeed later."""
    failure = classify(trouble)
    assert (failure.kind, failure.retryable, failure.rule) == (kind, retryable, failure.rule)


def test_the_message_is_the_innermost() -> None:
    """What a failure says is what the service said, not the wrapping."""
    text = "agent: Error code: 429 - {'error': {'message': 'slow down, please', 'code': 'rate_limit_exceeded'}}"
    assert classify(text).message == "slow down, please"
    assert classify(http(400, "no")).message == "no"
    assert classify("plain").message == "plain"


def test_a_wait_in_words() -> None:
    """A wait the text asks for is the failure's, where waiting can help."""
    assert classify("rate limited, try again in 1m3.5s").retry_after == 63.5
    assert classify(Evidence(text="rate limited, try again in 9s", retry_after=2.0)).retry_after == 2.0
    assert classify({"status": 400, "body": "no. Try again in 5s"}).retry_after is None


def test_tool_output_is_read_where_it_counts() -> None:
    """A wrapper's exit code is read, a long output's head and tail, and the last exception of a program."""
    assert (
        classify(Evidence(text="<returncode>127</returncode>\n<output>\n</output>", phase=Phase.TOOL)).kind
        is K.NOT_FOUND
    )
    assert classify(Evidence(text="exit=137\nKilled", phase=Phase.TOOL, exit_code=0)).kind is K.RESOURCE_EXHAUSTED
    assert (
        classify(Evidence(text="x\n" * 9_000 + "cp: y: Permission denied", phase=Phase.TOOL)).kind
        is K.PERMISSION_DENIED
    )
    assert classify(Evidence(text="it exited with code 0", phase=Phase.TOOL, exit_code=0)).kind is K.UNKNOWN
    chain = (
        "KeyError: 'a'\n\nDuring handling of the above exception\n\nrequests.exceptions.HTTPError: 404 Client Error: x"
    )
    assert classify(Evidence(text=chain, phase=Phase.TOOL, exit_code=1)).kind is K.NOT_FOUND
    said = 'API Error: 429 {"error": {"message": "too many requests, try again in 3s"}}'
    failure = classify(Evidence(text=said, phase=Phase.TOOL))
    assert (failure.kind, failure.retry_after) == (K.RATE_LIMIT, 3.0)
