"""Classification rules by HTTP status and by exception class, where the text matched no other rule."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.classify.rules.conditions import ROLE_SERVICES, SERVER_FAULT_STATUSES
from rung.core.domain.failures import Evidence, Kind

# Fallback by the service's own code, where its message said nothing more.
CODES: Final = (
    ClassifyRule(
        id="rate-by-code",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="The service's error code for too many requests, where the message says nothing more.",
        example=Evidence(text='{"type": "error", "error": {"type": "rate_limit_error", "message": "no"}}'),
        code=(
            "rate_limit_error", "rate_limit_exceeded", "rate_limited", "too_many_requests", "throttlingexception", "throttled", "throttling",
            "throttling_error", "requestlimitexceeded", "limit_requests", "toomanyrequestsexception", "ratelimitexceeded", "rate_limit",
            "toomanyrequests", "request_burst_too_fast", "requests_rate_limit", "model_rate_limit", "throttlederror", "rate_limit_reached", "requestthrottled",
        ),
        sure=False,
    ),
    ClassifyRule(
        id="broke-by-code",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="The service's error code for an internal error, where the message says nothing more.",
        example=Evidence(text='{"type": "error", "error": {"type": "api_error", "message": "no"}}'),
        code=(
            "api_error", "server_error", "internal_server_error", "internal_error", "internalserverexception", "internalfailure",
            "internal", "internalservererror", "internal_service_error", "system_error", "aborted", "data_loss",
            "upstream_error_500", "modelstreamerrorexception", "modelerrorexception",
        ),
        except_if=("bad request",),
        status=SERVER_FAULT_STATUSES,
        sure=False,
    ),
)  # fmt: skip

# Fallback by HTTP status, for responses whose body matched no rule above.
HTTP_STATUSES: Final = (
    ClassifyRule(
        id="http-401",
        kind=Kind.AUTH_ERROR,
        why="HTTP 401: the service rejects this key; a retry is rejected too.",
        example=Evidence(status=401, text="no"),
        status=(401, 407),
    ),
    ClassifyRule(
        id="asks-to-login",
        kind=Kind.AUTH_ERROR,
        why="A coding agent asks for a new login after the provider rejected the old one.",
        example=Evidence(text='Please run /login · API Error: 403 {"error": {"message": "Forbidden"}}'),
        status=(401, 403),
        contains=("please run /login",),
    ),
    ClassifyRule(
        id="http-403",
        kind=Kind.PERMISSION_DENIED,
        why="HTTP 403: authenticated, but not allowed.",
        example=Evidence(status=403, text="Forbidden"),
        status=(403,),
        provider=ROLE_SERVICES,
    ),
    ClassifyRule(
        id="http-403-key",
        kind=Kind.AUTH_ERROR,
        why="A provider of models answers 403 when it does not accept the key for the call.",
        example=Evidence(status=403, text="Forbidden", provider="anthropic"),
        status=(403,),
        sure=False,
    ),
    ClassifyRule(
        id="http-404",
        kind=Kind.NOT_FOUND,
        why="HTTP 404: the requested resource does not exist.",
        example=Evidence(status=404, text="Not Found"),
        status=(404, 410),
        sure=False,
    ),
    ClassifyRule(
        id="http-413",
        kind=Kind.CONTEXT_LIMIT,
        why="HTTP 413: the request is too large.",
        example=Evidence(status=413, text="no"),
        status=(413,),
    ),
    ClassifyRule(
        id="http-429",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="HTTP 429: too many requests in a short time.",
        example=Evidence(status=429, text="no"),
        status=(429,),
        sure=False,
    ),
    ClassifyRule(
        id="http-timeout",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="HTTP 408, 504 or another timeout status: a server or proxy timed out.",
        example=Evidence(status=504, text="no"),
        status=(408, 504, 522, 524, 598),
    ),
    ClassifyRule(
        id="http-503",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="HTTP 503 or 529: the service is up but has no capacity right now.",
        example=Evidence(status=503, text="no"),
        status=(503, 529),
    ),
    ClassifyRule(
        id="http-501",
        kind=Kind.CONFIGURATION,
        why="HTTP 501: the server does not implement what the client asks of it.",
        example=Evidence(status=501, text="no"),
        status=(501,),
    ),
    ClassifyRule(
        id="http-5xx",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="HTTP 5xx: the server failed; the error is usually transient.",
        example=Evidence(status=500, text="no"),
        status=range(500, 600),
        sure=False,
    ),
    ClassifyRule(
        id="http-409",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="HTTP 409 or 425: a concurrent operation was in progress.",
        example=Evidence(status=409, text="Conflict"),
        status=(409, 425),
    ),
    ClassifyRule(
        id="http-424",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="HTTP 424: inference servers answer so when the model failed to generate.",
        example=Evidence(status=424, text="no"),
        status=(424,),
    ),
    ClassifyRule(
        id="http-4xx",
        kind=Kind.INVALID_REQUEST,
        why="HTTP 4xx: the request itself is invalid; a retry does not help.",
        example=Evidence(status=400, text="no"),
        status=range(400, 500),
        sure=False,
    ),
)

# Fallback by exception class of an SDK, where nothing else matched.
EXCEPTION_CLASSES: Final = (
    ClassifyRule(
        id="class-overloaded",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="The SDK's exception class for a service without capacity, where the message says nothing more.",
        example=Evidence(exceptions=("litellm.ServiceUnavailableError",), text="no"),
        exception=("ServiceUnavailableError", "ServiceUnavailable", "ServiceUnavailableException"),
    ),
    ClassifyRule(
        id="class-key",
        kind=Kind.AUTH_ERROR,
        why="The SDK's exception class for a key without access.",
        example=Evidence(exceptions=("openai.PermissionDeniedError",), text="no"),
        exception=("PermissionDeniedError", "Unauthorized", "Unauthenticated", "UnauthorizedError"),
        code=("permission_error",),
    ),
    ClassifyRule(
        id="class-rate",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="The SDK's exception class for too many requests.",
        example=Evidence(exceptions=("openai.RateLimitError",), text="no"),
        exception=("RateLimitError", "ResourceExhausted", "RateLimitExceeded"),
        code=("resource_exhausted",),
    ),
    ClassifyRule(
        id="class-model",
        kind=Kind.NOT_FOUND,
        why="The SDK's exception class for a resource that does not exist.",
        example=Evidence(exceptions=("litellm.NotFoundError",), text="no"),
        exception=("NotFoundError", "NotFound", "ResourceNotFoundException"),
        code=("not_found", "not_found_error", "resourcenotfoundexception", "nosuchentity", "nosuchkey", "nosuchbucket"),
        sure=False,
    ),
    ClassifyRule(
        id="class-request",
        kind=Kind.INVALID_REQUEST,
        why="The SDK's exception class, or the service's error type, for an invalid request.",
        example=Evidence(exceptions=("litellm.BadRequestError",), text="no"),
        exception=("BadRequestError", "UnprocessableEntityError", "InvalidRequestError", "InvalidArgument", "BadRequest", "ValidationException", "UnsupportedParamsError", "ParamValidationError"),
        code=("invalid_request_error", "invalid_argument", "validationexception", "bad_request", "failed_precondition", "invalid_value", "badrequesterror", "-32602", "-32600", "invalid_request", "invalid_parameter", "invalidparameter", "invalid_parameter_error", "invalidargument", "invalidrequest", "badrequest",
            "validation_error", "unprocessable_entity", "missing_required_parameter", "unknown_parameter", "unsupported_parameter", "unsupported_value", "invalid_request_body", "invalid_type", "invalid_json", "invalidparametervalue",
            "missingparameter", "unsupported_content"),
        message_has=(
            "mcp error 32602", "mcp error 32600", "error 32602", "invalid params", "unsupported parameter/value/argument",
            "invalid parameter/argument/value", "parameter is illegal", "max/maximum tokens value", "maximum tokens you requested", "max tokens is too large",
            "max tokens must be", "no model specified/provided/selected/given", "no chat/default/embedding model specified/provided/selected/configured/set", "provide/specify a model", "must be one of", "extra inputs are not permitted", "issue/problem with your request", "check your inputs/parameters", "field required", "unknown parameter",
        ),
        sure=False,
    ),
    ClassifyRule(
        id="class-server",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="The SDK's exception class for a server failure.",
        example=Evidence(exceptions=("openai.InternalServerError",), text="no"),
        exception=("InternalServerError", "ServerError", "InternalServerException", "BadGatewayError", "EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError", "ServiceError"),
        sure=False,
    ),
    ClassifyRule(
        id="class-connection",
        kind=Kind.NETWORK,
        retryable=True,
        why="The SDK's exception class for a call without a response.",
        example=Evidence(exceptions=("openai.APIConnectionError",), text="no"),
        exception=("APIConnectionError", "TransportError", "APIConnectionTimeoutError"),
    ),
)  # fmt: skip
