"""LiteLLM's error mapping: the real package, given exceptions as its callers raise them."""

from __future__ import annotations

import inspect
import json
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bench.corpus.peers import Answer, by_status
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

# Provider names that differ in LiteLLM. Providers unknown to it are treated as OpenAI-compatible.
_PROVIDERS: Final[Mapping[str, str]] = {
    "alibaba": "dashscope",
    "aws": "bedrock",
    "custom": "custom_openai",
    "fireworks": "fireworks_ai",
    "github-copilot": "github_copilot",
    "google": "gemini",
    "litellm": "litellm_proxy",
    "llama.cpp": "llamafile",
    "lmstudio": "lm_studio",
    "together": "together_ai",
    "vertex": "vertex_ai",
    "vllm": "hosted_vllm",
}
_ANY_OTHER: Final = "custom_openai"

# Status of SDK exception classes, for rows without a status.
_STATUS_OF_CLASS: Final[Mapping[str, int]] = {
    "BadRequestError": 400,
    "InvalidRequestError": 400,
    "InvalidAPIKeyError": 401,
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "AccessDeniedException": 403,
    "UnrecognizedClientException": 403,
    "NotFoundError": 404,
    "ConflictError": 409,
    "UnprocessableEntityError": 422,
    "RateLimitError": 429,
    "ResourceExhausted": 429,
    "ThrottlingException": 429,
    "InternalServerError": 500,
}

# LiteLLM's classes as kinds. A class that covers several kinds gets all of them, and the best counts.
_KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "APIConnectionError": (Kind.NETWORK, Kind.STREAM_INTERRUPTED),
    "APIResponseValidationError": (Kind.MALFORMED_OUTPUT,),
    "AuthenticationError": (Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS),
    "BadGatewayError": (Kind.SERVER_ERROR,),
    "BadRequestError": (Kind.INVALID_REQUEST, Kind.CONFIGURATION),
    "BudgetExceededError": (Kind.QUOTA_EXHAUSTED, Kind.BUDGET_EXHAUSTED),
    "ContentPolicyViolationError": (Kind.CONTENT_FILTER,),
    "ContextWindowExceededError": (Kind.CONTEXT_LIMIT,),
    "InternalServerError": (Kind.SERVER_ERROR, Kind.OVERLOADED),  # also raised for Anthropic's 529
    "JSONSchemaValidationError": (Kind.MALFORMED_OUTPUT,),
    "NotFoundError": (Kind.NOT_FOUND, Kind.MODEL_UNAVAILABLE),
    "PaymentRequiredError": (Kind.QUOTA_EXHAUSTED,),
    "PermissionDeniedError": (Kind.PERMISSION_DENIED, Kind.AUTH_ERROR),
    "RateLimitError": (Kind.RATE_LIMIT,),
    "RejectedRequestError": (Kind.CONTENT_FILTER,),
    "ServiceUnavailableError": (Kind.OVERLOADED, Kind.SERVICE_DOWN),
    "Timeout": (Kind.TIMEOUT,),
    "UnprocessableEntityError": (Kind.INVALID_REQUEST, Kind.CONFIGURATION),
    "UnsupportedParamsError": (Kind.INVALID_REQUEST, Kind.CONFIGURATION),
}


def _load(module: str) -> Any:
    """Import a module that may be missing where types are checked."""
    return import_module(module)


def own_error(own: Any, text: str, provider: str, status: int | None) -> Exception:
    """Return an error of one of LiteLLM's own classes, with the facts that its constructor takes."""
    facts: dict[str, Any] = {"message": text, "llm_provider": provider, "model": "model"}
    facts |= {"current_cost": 0.0, "max_budget": 0.0}  # BudgetExceededError has no model, but these
    if own.__name__ == "APIError":
        facts["status_code"] = status or 500
    if own.__name__ in ("PermissionDeniedError", "UnprocessableEntityError"):
        facts["response"] = _load("httpx").Response(status or own.status_code)
    taken = inspect.signature(own).parameters
    error: Exception = own(**{name: value for name, value in facts.items() if name in taken})
    return error


class LiteLLM:
    """`litellm.exception_type`, its Router's decision whether to repeat, and its reading of Retry-After."""

    name = "litellm"
    forms: tuple[str, ...] = ("http", "exception")

    def __init__(self) -> None:
        """Import the package without letting it download its price list; ImportError if missing."""
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        self._litellm = _load("litellm")
        self._litellm.suppress_debug_info = True
        self._map = _load("litellm.litellm_core_utils.exception_mapping_utils").exception_type
        self._raised = _load("litellm.llms.base_llm.chat.transformation").BaseLLMException
        self._wait = _load("litellm.utils")._get_retry_after_from_exception_header  # noqa: SLF001
        self._router = self._litellm.Router(model_list=[])
        self._httpx = _load("httpx")

    def prepare(self, seen: dict[str, Any]) -> tuple[Exception, str]:
        """Build the exception that LiteLLM's HTTP handler or an SDK would raise, and the provider's name."""
        provider = _PROVIDERS.get(seen.get("provider") or "", seen.get("provider") or "")
        known = {member.value for member in self._litellm.LlmProviders}
        provider = provider if provider in known else _ANY_OTHER
        raised = seen.get("exception_type") or ""
        own = self._own_class(raised)
        if own is not None:
            return own_error(own, _text(seen), provider, seen.get("status")), provider
        class_name = raised.rpartition(".")[2] or "APIError"
        status = seen.get("status") or _STATUS_OF_CLASS.get(class_name)
        if status is None:
            return type(class_name, (Exception,), {"message": _text(seen)})(_text(seen)), provider
        return self._http_error(status, seen), provider

    def judge(self, prepared: tuple[Exception, str]) -> Exception:
        """Let LiteLLM map the error: it raises the mapped one, or returns one of its own."""
        error, provider = prepared
        try:
            mapped: Exception = self._map(model="model", original_exception=error, custom_llm_provider=provider)
        except Exception as raised:
            return raised
        return mapped

    def answer(self, verdict: Exception) -> Answer:
        """Return the kinds of the class; for an unknown class, those of its status."""
        class_name = type(verdict).__name__
        status = getattr(verdict, "status_code", None)
        kinds = _KINDS.get(class_name)
        if kinds is None:
            kinds = by_status(status).kinds if isinstance(status, int) else (Kind.UNKNOWN,)
        wait = self._wait(getattr(verdict, "litellm_response_headers", None))
        return Answer(
            kinds=kinds,
            retryable=self._would_repeat(verdict),
            retry_after=float(wait) if wait is not None and wait >= 0 else None,
            rule=class_name,
        )

    def _own_class(self, raised: str) -> Any:
        package, _, class_name = raised.rpartition(".")
        if package.partition(".")[0] != "litellm":
            return None
        return getattr(self._litellm, class_name, None)

    def _http_error(self, status: int, seen: dict[str, Any]) -> Exception:
        headers = {name: str(value) for name, value in (seen.get("headers") or {}).items()}
        request = self._httpx.Request("POST", "https://api.invalid/v1/chat/completions")
        # Without content-length and content-encoding: they would not match this body.
        kept_headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
        response = self._httpx.Response(status, headers=kept_headers, text=_text(seen), request=request)
        error: Exception = self._raised(
            status_code=status,
            message=_text(seen),
            headers=self._httpx.Headers(headers),
            request=request,
            response=response,
            body=_body(seen),
        )
        return error

    def _would_repeat(self, error: Exception) -> bool:
        """Return whether its Router would retry with one healthy deployment.

        `should_retry` is checked as well: the Router misses a 403 that was mapped to a bad request.
        """
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and not self._litellm.should_retry(status):
            return False
        try:
            one: list[dict[str, Any]] = [{}]
            return bool(self._router.should_retry_this_error(error, healthy_deployments=one, all_deployments=one))
        except Exception:
            return False


def _text(seen: dict[str, Any]) -> str:
    text = seen.get("body") or seen.get("message") or ""
    return text if isinstance(text, str) else json.dumps(text)


def _body(seen: dict[str, Any]) -> dict[str, Any] | None:
    """Return the body as the SDKs store it: the value of "error"."""
    body = seen.get("body")
    try:
        parsed = json.loads(body) if isinstance(body, str) else body
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    inner = parsed.get("error")
    return inner if isinstance(inner, dict) else parsed
