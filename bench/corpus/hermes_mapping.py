"""hermes-agent's error classifier: the real package, given exceptions as its loop meets them."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bench.corpus.peers import Answer
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

# Its reasons as kinds. A reason that covers several kinds gets all of them, and the best counts.
_KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "auth": (Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS, Kind.PERMISSION_DENIED),
    "auth_permanent": (Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS, Kind.PERMISSION_DENIED),
    "billing": (Kind.QUOTA_EXHAUSTED,),
    "rate_limit": (Kind.RATE_LIMIT,),
    "upstream_rate_limit": (Kind.RATE_LIMIT, Kind.OVERLOADED),
    "overloaded": (Kind.OVERLOADED, Kind.SERVICE_DOWN),
    "server_error": (Kind.SERVER_ERROR,),
    "timeout": (Kind.TIMEOUT, Kind.NETWORK, Kind.STREAM_INTERRUPTED),
    "ssl_cert_verification": (Kind.NETWORK, Kind.CONFIGURATION),
    "context_overflow": (Kind.CONTEXT_LIMIT,),
    "payload_too_large": (Kind.CONTEXT_LIMIT,),
    "image_too_large": (Kind.INVALID_REQUEST,),
    "model_not_found": (Kind.MODEL_UNAVAILABLE, Kind.NOT_FOUND),
    "provider_policy_blocked": (Kind.CONFIGURATION, Kind.MODEL_UNAVAILABLE),
    "content_policy_blocked": (Kind.CONTENT_FILTER, Kind.REFUSAL),
    "format_error": (Kind.INVALID_REQUEST, Kind.CONFIGURATION),
}
_OTHER: Final = (Kind.INVALID_REQUEST,)  # reasons of single providers, all of them about the request


class Hermes:
    """`agent.error_classifier.classify_api_error`: its reason, and whether it repeats the request."""

    name = "hermes"
    forms: tuple[str, ...] = ("http", "exception")

    def __init__(self) -> None:
        self._classify = import_module("agent.error_classifier").classify_api_error

    def prepare(self, seen: dict[str, Any]) -> tuple[Exception, str]:
        """Build an exception of the SDK's class, with its status, body and message."""
        body, message = seen.get("body") or "", seen.get("message") or ""
        text = body if isinstance(body, str) else json.dumps(body)
        name = (seen.get("exception_type") or "APIStatusError").rpartition(".")[2]
        error: Any = type(name, (Exception,), {})(text or message)
        error.status_code = seen.get("status")
        error.body = _parsed(text)
        return error, seen.get("provider") or ""

    def judge(self, prepared: tuple[Exception, str]) -> Any:
        error, provider = prepared
        return self._classify(error, provider=provider)

    def answer(self, verdict: Any) -> Answer:
        reason = verdict.reason.value
        kinds = (Kind.UNKNOWN,) if reason == "unknown" else _KINDS.get(reason, _OTHER)
        return Answer(kinds=kinds, retryable=bool(verdict.retryable) and not verdict.should_compress)


def _parsed(text: str) -> Any:
    """Return the body as an SDK parses it; None if it is not an object."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
