"""Classification rules for services that are overloaded, fail, or cannot be reached."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.classify.rules.conditions import CALLS, NON_GATEWAY_STATUSES
from rung.core.domain.failures import Evidence, Kind, Phase

# The service is overloaded, fails, or cannot be reached.
AVAILABILITY: Final = (
    ClassifyRule(
        id="daemon-down",
        kind=Kind.SERVICE_DOWN,
        why="A program that should run on this machine or its network does not; it has to be started first.",
        example=Evidence(text="Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", phase=Phase.TOOL, exit_code=1),
        phase=(Phase.TOOL,),
        output_has=("is the server running", "is the * daemon running", "did you specify the right host or port", "is the service running", "daemon is not running", "server is not running", "mcp server * is not connected"),
        except_if=("permission denied",),
    ),
    ClassifyRule(
        id="service-down",
        kind=Kind.SERVICE_DOWN,
        retryable=True,
        why="The proxy reports that the service's origin server is down.",
        example=Evidence(status=521, text="Web server is down"),
        code=("521",),
        message_has=("web server is down", "error 521", "error code 521", "http code 521", "origin is unreachable"),
        output_has=("web server is down", "http code 521"),
    ),
    ClassifyRule(
        id="http-521",
        kind=Kind.SERVICE_DOWN,
        retryable=True,
        why="HTTP 521 to 530: the origin host behind the proxy cannot be reached.",
        example=Evidence(status=521, text="error"),
        status=(521, 522, 523, 525, 526, 530),
    ),
    ClassifyRule(
        id="maintenance",
        kind=Kind.SERVICE_DOWN,
        why="The service is down for maintenance, with or without an announced end.",
        example=Evidence(text="The API is under maintenance until further notice"),
        output_has=(
            "under maintenance", "scheduled/planned/ongoing/routine/emergency maintenance", "maintenance mode", "down for maintenance", "undergoing maintenance",
            "services/service will be down", "major outage", "service has been discontinued", "services down",
        ),
    ),
    ClassifyRule(
        id="lock-held",
        kind=Kind.TOOL_ERROR,
        retryable=True,
        why="Another process holds the lock; it is usually released soon.",
        example=Evidence(text="sqlite3.OperationalError: database is locked", phase=Phase.TOOL, exit_code=1),
        output_has=(
            "database is locked", "database table is locked", "another git process", "index lock file exists", "could not get lock",
            "unable to acquire the * lock", "resource busy", "text file busy", "waiting for cache lock", "another process * running/using",
            "device or resource busy", "ebusy", "being used by another process", "lock held by", "lock acquisition failed", "acquire lock", "deadlock detected", "could not obtain lock", "another operation * in progress", "acquiring the state lock",
        ),
        except_if=("permission denied",),
    ),
    ClassifyRule(
        id="browser-crashed",
        kind=Kind.TOOL_ERROR,
        retryable=True,
        why="The browser or its page crashed or was closed; a new one may work.",
        example=Evidence(text="Error: Page.screenshot: Target page, context or browser has been closed", phase=Phase.TOOL),
        phase=(Phase.TOOL,),
        output_has=("target crashed", "page crashed", "browser has been closed", "browser has disconnected", "tab crashed"),
    ),
    ClassifyRule(
        id="overloaded",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="The service is up but has no capacity right now.",
        example=Evidence(status=529, text="Overloaded", code="overloaded_error"),
        code=(
            "overloaded_error", "engine_overloaded", "server_overloaded", "serviceunavailableexception", "model_overloaded",
            "slow_down", "at_capacity", "capacity_exceeded", "unavailable", "modelnotreadyexception", "no_capacity",
            "service_unavailable", "serviceunavailable", "service_overloaded", "overloaded", "engine_overloaded_error", "server_is_overloaded",
        ),
        exception=("OverloadedError", "ModelNotReadyException"),
        message_has=(
            "overloaded", "at capacity", "over capacity", "capacity exceeded", "capacity temporarily exceeded", "impacting service reliability", "no capacity", "insufficient capacity", "lack of capacity",
            "capacity is limited", "high demand", "high load", "peak load", "heavy load", "temporarily unavailable", "service unavailable",
            "server is busy", "system is busy", "servers are busy", "too busy", "is currently loading", "model is loading", "loading model",
            "model is still loading", "model is not ready", "model not ready", "no available workers/server/servers/instances", "no idle/free/ready workers", "no healthy upstream",
            "experiencing high", "experiencing * high traffic/demand/load/volume/usage", "high traffic", "heavy traffic", "high volume of requests/traffic", "no slot/slots/gpu/gpus available/free", "no workers/servers/slots/gpus/capacity left", "queue length/size limit", "queue limit reached", "too many pending requests", "no free/available slot/slots/gpu/gpus", "resources are limited", "try again when * available", "capacity constraints", "over capacity", "server overload",
            "currently unavailable", "service is unavailable", "backend is unavailable", "^busy$", "^upstream/server/service busy$", "queue is full", "waiting queue", "访问量过大", "服务繁忙",
        ),
        except_if=("free tier is not", "error/failed/failure/unable loading model", "model loading was stopped"),
    ),
    ClassifyRule(
        id="stream-cut",
        kind=Kind.STREAM_INTERRUPTED,
        retryable=True,
        why="The response had started and was cut off.",
        example=Evidence(text="peer closed connection without sending complete message body (incomplete chunked read)"),
        exception=("IncompleteRead", "ChunkedEncodingError", "ClientPayloadError", "ResponseStreamingError", "TransferEncodingError"),
        message_has=(
            "stream disconnected", "incomplete chunked read", "without sending complete message body", "stream closed before",
            "stream ended before/without/unexpectedly", "error decoding response body", "reading a body from connection", "response ended prematurely", "incompleteread",
            "connection broken", "stream error", "premature close", "stream was interrupted", "stream interrupted", "stream terminated",
            "response payload is not completed", "closed before message completed", "unexpected end of stream", "before response completed",
            "stream idle timeout", "stream stalled", "transfer closed with * remaining", "stream was reset", "stream reset", "early eof", "unexpected eof$", "eof$", "closed mid response", "error occurred during streaming", "rst stream", "connection closed at byte", "typeerror terminated", "^terminated$",
        ),
        except_if=(
            "error sending request",  # then it never began
            "rate limited", "rate limit/limits exceeded/reached", "rate limit is/was/has", "too many requests", "usage limit", "error occurred while processing", "could not be decrypted",  # the reason is named
        ),
        status=(None, 200, *range(500, 600)),
    ),
    ClassifyRule(
        id="payload-cut",
        kind=Kind.STREAM_INTERRUPTED,
        retryable=True,
        why="The HTTP library's exception class for a body that ended too early, whatever number its text names.",
        example=Evidence(exceptions=("aiohttp.ClientPayloadError",), text="Response payload is not completed: <TransferEncodingError: 400>"),
        exception=("ClientPayloadError", "TransferEncodingError", "IncompleteRead", "ChunkedEncodingError"),
        phase=CALLS,
    ),
    ClassifyRule(
        id="tool-unreached",
        kind=Kind.NETWORK,
        retryable=True,
        why="A tool timed out waiting for a connection.",
        example=Evidence(text="fatal: unable to access 'https://host/': Connection timed out", phase=Phase.TOOL, exit_code=128),
        phase=(Phase.TOOL,),
        output_has=("connection/connect timed out", "etimedout", "connect/connection timeout"),
    ),
    ClassifyRule(
        id="timed-out",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="A call timed out.",
        example=Evidence(exceptions=("TimeoutError", "OSError"), text="timed out"),
        code=(
            "deadline_exceeded", "request_timeout", "timeout_error", "gateway_timeout", "requesttimeout", "requesttimeoutexception",
            "modeltimeoutexception", "timeout", "deadlineexceeded", "requesttimedout", "upstream_timeout",
        ),
        exception=(
            "TimeoutError", "TimeoutExpired", "TimeoutException", "APITimeoutError", "ReadTimeout", "ConnectTimeout", "WriteTimeout",
            "PoolTimeout", "Timeout", "ReadTimeoutError", "ConnectTimeoutError", "DeadlineExceeded", "ServerTimeoutError",
            "ConnectionTimeoutError", "SocketTimeoutError", "GatewayTimeout", "RequestTimeout", "ModelTimeoutException",
        ),
        message_has=(
            "timed out", "timeout of * exceeded", "deadline exceeded", "request timeout", "request timed out", "took too long",
            "operation timed out", "timeout exceeded", "timeout error", "gateway timeout", "timeout while", "timed out waiting", "exceeded the timeout",
            "within the deadline", "did not answer/respond/reply within/in", "didnt answer/respond/reply within/in", "no answer/response/reply within", "httpclient timeout", "due to timeout", "due to a timeout", "gave/giving up waiting", "read timeout", "timeout awaiting", "etimedout", "esockettimedout", "connect/connection timeout", "connection timed out", "请求超时",
        ),
    ),
    ClassifyRule(
        id="tls-refused",
        kind=Kind.NETWORK,
        why="The TLS certificate is not trusted; a retry does not help.",
        example=Evidence(text="[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate"),
        exception=("SSLCertVerificationError", "ClientConnectorCertificateError"),
        output_has=(
            "certificate verify failed", "self signed certificate", "certificate has expired", "unable to get local issuer certificate",
            "hostname mismatch", "ssl certificate problem", "x509 certificate", "unable to verify the first certificate", "wrong version number", "depth zero self signed cert",
        ),
    ),
    ClassifyRule(
        id="no-route",
        kind=Kind.NETWORK,
        retryable=True,
        why="The connection could not be established or was lost.",
        example=Evidence(exceptions=("ConnectionResetError", "ConnectionError", "OSError"), text="reset by peer"),
        exception=(
            "ConnectionError", "gaierror", "SSLError", "SSLEOFError", "SSLZeroReturnError", "RemoteDisconnected", "ConnectError", "ReadError", "WriteError", "RemoteProtocolError",
            "ClientConnectorError", "ClientOSError", "ServerDisconnectedError", "EndpointConnectionError", "ConnectionClosedError",
            "HTTPClientError", "ProxyError", "NewConnectionError", "MaxRetryError", "NameResolutionError", "ClientConnectorDNSError", "CloseError",
            "ProxyConnectionError", "ConnectionResetError", "UnknownHostException", "ConnectException", "SocketException", "NoRouteToHostException", "ProtocolError", "NetworkError", "ConnectionRefusedError", "ClientConnectionError",
        ),
        output_has=(
            "connection refused/reset/aborted/closed/lost", "connection to the server * refused", "connection error", "unable to connect", "could not connect",
            "failed to connect", "cannot connect", "connection was closed/refused/reset", "connection was forcibly closed", "connection closed",
            "econnrefused", "econnreset", "enotfound", "eai again", "epipe", "ehostunreach", "enetunreach", "enetreset", "enetdown", "ehostdown", "enotconn", "econnaborted", "und err socket",
            "und err connect timeout", "socket hang up", "getaddrinfo", "name or service not known", "temporary failure in name resolution",
            "temporary failure resolving", "could not resolve host", "couldnt resolve host", "failed to resolve", "nodename nor servname",
            "network is unreachable", "network unreachable", "no route to host", "fetch failed", "server disconnected", "without sending a response",
            "remote end closed connection", "max retries exceeded with url", "network error", "dns resolution failed", "broken pipe", "socket closed", "dns lookup failed",
            "tls handshake", "ssl handshake", "ssl connect error", "unexpected eof while reading", "unable to access * could not resolve",
            "cannot connect to proxy", "upstream connect error", "connection failure", "remote end hung up", "rpc failed", "err name not resolved", "err empty response", "err connection * refused/reset/closed/aborted/failed", "err address unreachable", "err tunnel connection failed", "err proxy connection failed", "err timed out", "err connection timed out", "websocket connection limit", "websocket connection closed/failed/error", "name resolution", "no address associated with hostname", "connection to server * failed", "connect etimedout",
            "proxyconnect tcp", "tunnel connection failed", "error sending request", "do request failed", "dial tcp", "response body while trying to fetch", "parse error expected http", "host is down", "no such host", "does not resolve", "unable/failed to reach", "could not reach", "cannot reach", "unknownhostexception", "attempting to fetch resource", "^typeerror load failed", "connection unexpectedly closed", "err internet disconnected",
        ),
        except_if=(
            "failed to resolve file/path/module/import/entry/reference/symbol/type/plugin/alias", "failed fatal", "no password supplied", "timeout expired", "read timed out", "timeout exceeded while awaiting", "error responses", "connection closed at byte",
        ),  # the connection was made, or its end is explained
        status=NON_GATEWAY_STATUSES,  # a gateway's own status says more than why it could not reach the next one
    ),
    ClassifyRule(
        id="rate-limited",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="Too many requests in a short time: wait as asked, then retry.",
        example=Evidence(status=403, text="You have exceeded a secondary rate limit. Please wait a few minutes."),
        exception=("RateLimitExceededException", "ThrottlingException", "TooManyRequests", "TooManyRequestsException", "ThrottledException"),
        message_has=(
            "rate limit", "rate limits", "rate limited", "ratelimited", "ratelimit", "too many requests", "throttling", "throttled", "request rate",
            "rate exceeded", "burst limit", "requests per minute", "requests per second", "tokens per minute", "please wait * before", "slow down", "too many tokens please wait",
            "too many concurrent", "concurrency limit", "concurrent requests", "requests rate", "resource exhausted", "resource has been exhausted",
            "request was throttled", "cooling down", "in cooldown", "limiting requests", "请求过于频繁", "速率限制", "limit exceeded try again",
        ),
        output_has=("toomanyrequests", "pull rate limit", "secondary rate limit", "api rate limit exceeded"),
    ),
)  # fmt: skip
