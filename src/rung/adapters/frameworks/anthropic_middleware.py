"""Recovery inside the `anthropic` client: `Anthropic(middleware=[Recovering("call")], max_retries=0)`.

Every HTTP attempt goes through the ladder: repeats, a larger output limit, a mended or smaller history, another model. The
SDK's own retries must be off (`max_retries=0`): one owner of retries. What cannot be recovered reaches the caller as the
SDK's own error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anthropic import Middleware

from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Evidence
from rung.core.domain.request import Request
from rung.engine.recover import recover, recover_sync

if TYPE_CHECKING:
    from anthropic import APIRequest

    from rung.core.domain.outcome import Outcome
    from rung.core.policy.policy import Policy

_FIRST_ERROR: Final = 400


class AnthropicRecoveryMiddleware(Middleware):
    """Middleware that takes each call up the ladder of a policy. `ports` are those of `recover`: journal, listeners, …"""

    def __init__(self, policy: Policy | str = "call", **ports: Any) -> None:
        self.policy = policy
        self.ports = ports

    def handle(self, request: APIRequest, call_next: Any) -> Any:
        """One call of the synchronous client."""

        def attempt(asked: Request) -> Any:
            response = call_next(_sent(request, asked))
            if response.status_code >= _FIRST_ERROR:
                response.read()
                raise AnthropicErrorResponse(response)
            return response

        return _given(recover_sync(attempt, _asked(request), policy=self.policy, **self.ports))

    async def handle_async(self, request: APIRequest, call_next: Any) -> Any:
        """One call of the asynchronous client."""

        async def attempt(asked: Request) -> Any:
            response = await call_next(_sent(request, asked))
            if response.status_code >= _FIRST_ERROR:
                await response.read()
                raise AnthropicErrorResponse(response)
            return response

        return _given(await recover(attempt, _asked(request), policy=self.policy, **self.ports))


class AnthropicErrorResponse(AttemptError):
    """The service answered with an error."""

    def __init__(self, response: Any) -> None:
        text = clip(response.http_response.text)
        super().__init__(text)
        self.evidence = Evidence(
            text=text, status=response.status_code, headers=dict(response.headers), provider="anthropic"
        )
        self.response = response


def _asked(request: APIRequest) -> Request:
    body: Any = request.json if isinstance(request.json, dict) else {}
    return Request(
        messages=tuple(body.get("messages") or ()), model=str(body.get("model", "")), max_tokens=body.get("max_tokens")
    )


def _sent(request: APIRequest, asked: Request) -> APIRequest:
    """The SDK's request with what a rung changed."""
    before = _asked(request)
    changed = before.changed(asked)
    if not {"messages", "model", "max_tokens"} & set(changed) or not isinstance(request.json, dict):
        return request
    body = {**request.json, "messages": [dict(one) for one in asked.messages], "model": asked.model}
    if asked.max_tokens is not None:
        body["max_tokens"] = asked.max_tokens
    return request.copy(body=body)


def _given(outcome: Outcome[Any]) -> Any:
    """The good answer; or the last bad one, of which the SDK makes its own error."""
    if outcome.ok:
        return outcome.value
    if isinstance(outcome.error, AnthropicErrorResponse):
        return outcome.error.response
    return outcome.unwrap()
