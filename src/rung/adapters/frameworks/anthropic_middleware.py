"""Recovery in the `anthropic` client: `Anthropic(middleware=[AnthropicRecoveryMiddleware("call")], max_retries=0)`.

Every call goes through the ladder: retry, a larger output limit, a repaired or smaller history, another model. Turn the
SDK's retries off (`max_retries=0`): retries need one owner. If recovery fails, the caller gets the SDK's error. A failing
service is waited for as long as the policy's `patience`, but no longer than the call's own timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anthropic import Middleware

from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Evidence
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.engine.recover import recover, recover_sync

if TYPE_CHECKING:
    from anthropic import APIRequest

    from rung.core.domain.outcome import Outcome
    from rung.core.policy.policy import Policy

_FIRST_ERROR_STATUS: Final = 400


class AnthropicRecoveryMiddleware(Middleware):
    """Middleware that recovers each call with a policy. `ports` are those of `recover`: journal, listeners, …"""

    def __init__(self, policy: Policy | str = "call", **ports: Any) -> None:
        self.policy = make_policy(policy) if isinstance(policy, str) else policy
        self.ports = ports

    def handle(self, request: APIRequest, call_next: Any) -> Any:
        """Handle a call of the blocking client."""

        def attempt(changed: Request) -> Any:
            response = call_next(_apply_changes(request, changed))
            if response.status_code >= _FIRST_ERROR_STATUS:
                response.read()
                raise AnthropicErrorResponse(response)
            return response

        return _response_or_raise(
            recover_sync(attempt, _to_request(request), policy=self._policy_of(request), **self.ports)
        )

    async def handle_async(self, request: APIRequest, call_next: Any) -> Any:
        """Handle a call of the async client."""

        async def attempt(changed: Request) -> Any:
            response = await call_next(_apply_changes(request, changed))
            if response.status_code >= _FIRST_ERROR_STATUS:
                await response.read()
                raise AnthropicErrorResponse(response)
            return response

        return _response_or_raise(
            await recover(attempt, _to_request(request), policy=self._policy_of(request), **self.ports)
        )

    def _policy_of(self, request: APIRequest) -> Policy:
        timeout: Any = request.timeout
        seconds = getattr(timeout, "read", timeout)
        return self.policy.with_patience_at_most(seconds if isinstance(seconds, int | float) else None)


class AnthropicErrorResponse(AttemptError):
    """HTTP error response of the API."""

    def __init__(self, response: Any) -> None:
        text = clip(response.http_response.text)
        super().__init__(text)
        self.evidence = Evidence(
            text=text, status=response.status_code, headers=dict(response.headers), provider="anthropic"
        )
        self.response = response


def _to_request(request: APIRequest) -> Request:
    body: Any = request.json if isinstance(request.json, dict) else {}
    return Request(
        messages=tuple(body.get("messages") or ()), model=str(body.get("model", "")), max_tokens=body.get("max_tokens")
    )


def _apply_changes(request: APIRequest, changed: Request) -> APIRequest:
    """Return the SDK's request with the changes of a rung."""
    before = _to_request(request)
    fields = before.changed(changed)
    if not {"messages", "model", "max_tokens"} & set(fields) or not isinstance(request.json, dict):
        return request
    body = {**request.json, "messages": [dict(message) for message in changed.messages], "model": changed.model}
    if changed.max_tokens is not None:
        body["max_tokens"] = changed.max_tokens
    return request.copy(body=body)


def _response_or_raise(outcome: Outcome[Any]) -> Any:
    """Return the good response, or the last error response, from which the SDK raises its own error."""
    if outcome.ok:
        return outcome.value
    if isinstance(outcome.error, AnthropicErrorResponse):
        return outcome.error.response
    return outcome.unwrap()
