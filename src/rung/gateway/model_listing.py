"""Model list and token count requests, which agents send beside model calls.

Both go to the upstream, with retries. If the upstream cannot list models, the policy's models are listed. Token counts
are never estimated here: a client would take the number for exact. It gets an error instead and can estimate itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.request import Request
from rung.engine.recover import recover
from rung.gateway import response as responses
from rung.gateway.http.port import read_body, text_headers
from rung.gateway.response import GatewayResponse
from rung.wires.gemini_path import GENERATE, STREAM, parse_path
from rung.wires.registry import GEMINI, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.outcome import Outcome
    from rung.gateway.gateway import Gateway
    from rung.gateway.upstream.settings import UpstreamSettings
    from rung.wires.registry import WireFormat

MODELS: Final = "/v1/models"
_GEMINI_MODELS: Final = "/v1beta/models"
COUNT_TOKENS: Final = "/v1/messages/count_tokens"
_GEMINI_COUNT: Final = ":countTokens"
_BAD_REQUEST: Final = 400
_UNSUPPORTED_STATUSES: Final = frozenset({404, 405, 501})  # the upstream has no such endpoint
_ANSWERED_BY_GATEWAY: Final = (b"x-rung-answered-by", b"gateway")


def is_lookup(method: str, path: str) -> bool:
    """Return whether a request lists models or counts tokens."""
    if method == "POST":
        return counts_tokens(path)
    return method == "GET" and bool(_listing(path))


def counts_tokens(path: str) -> bool:
    """Return whether a path counts the tokens of a request."""
    return path == COUNT_TOKENS or (path.endswith(_GEMINI_COUNT) and parse_path(path) is not None)


def _listing(path: str) -> str:
    """Return the path of the list that a path belongs to; empty if it is no path of models."""
    return next((list_ for list_ in (MODELS, _GEMINI_MODELS) if path == list_ or path.startswith(list_ + "/")), "")


async def answer_lookup(
    gateway: Gateway,
    wire: WireFormat,
    upstream: UpstreamSettings,
    path: str,
    upstream_request: tuple[str, str, list[tuple[bytes, bytes]], bytes],
    models: Sequence[str] = (),
) -> GatewayResponse:
    """Answer a lookup from the upstream, else from the policy. `models`: the models a key is restricted to."""
    is_count = counts_tokens(path)
    if models and not is_count:
        return _list_models(wire, path, models)
    last: list[GatewayResponse] = []
    policy = gateway.policy("").replace(models=(), agents=())  # a fallback model would give a wrong answer

    async def attempt(_: Request) -> GatewayResponse:
        last.clear()
        async with asyncio.timeout(gateway.settings.timeouts.total):
            response = await gateway.client.send(upstream, *upstream_request)
            try:
                body = await read_body(response, gateway.settings.limits.answer)
            finally:
                response.close()
        reply = GatewayResponse(response.status, responses.headers_for_client(response.raw_headers), body)
        if reply.status >= _BAD_REQUEST:
            last.append(reply)
            raise AttemptError.of(
                evidence_of({"status": reply.status, "headers": text_headers(response), "body": body})
            )
        return reply

    outcome: Outcome[GatewayResponse] = await recover(
        attempt,
        Request(prompt=path),
        policy=policy,
        journal=None,  # not a call of a client
        key=f"{upstream.name}{path if is_count else _listing(path)}",
        breakers=gateway.breakers,
        retry_budget=gateway.retry_budget,
    )
    if outcome.value is not None:
        return outcome.value
    if not is_count and (not last or last[0].status in _UNSUPPORTED_STATUSES or last[0].status >= 500):  # noqa: PLR2004  # HTTP
        model_names = [model.name for model in gateway.policy("").models]
        if model_names:
            return _list_models(wire, path, model_names)
    failure = outcome.failure
    assert failure is not None  # noqa: S101  # an outcome without value has a failure
    if last:
        return responses.with_retry_advice(last[0], failure)
    text = failure.message.strip().partition("\n")[0][:300]
    text = f"upstream request failed ({upstream.name}): {text}"
    return responses.with_retry_advice(
        responses.upstream_error(wire, responses.status_for(failure.kind), text), failure
    )


def _list_models(wire: WireFormat, path: str, models: Sequence[str]) -> GatewayResponse:
    """Return the list of models, or one of them, in the client's API format."""
    format_model = {MESSAGES.name: _anthropic_model, GEMINI.name: _gemini_model}.get(wire.name, _openai_model)
    model_id = path.removeprefix(_listing(path)).strip("/")
    if not model_id and wire is GEMINI:
        body: dict[str, Any] = {"models": [format_model(model) for model in models]}
    elif not model_id:
        body = {"data": [format_model(model) for model in models]}
        body |= {"has_more": False, "first_id": models[0], "last_id": models[-1]} if wire is MESSAGES else {}
        body |= {} if wire is MESSAGES else {"object": "list"}
    elif model_id in models:
        body = format_model(model_id)
    else:
        return responses.error_response(wire, 404, f"model {model_id!r} not found; available: {', '.join(models)}")
    return GatewayResponse(200, [(b"content-type", b"application/json"), _ANSWERED_BY_GATEWAY], orjson.dumps(body))


def _anthropic_model(model: str) -> dict[str, Any]:
    return {"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}


def _gemini_model(model: str) -> dict[str, Any]:
    methods = [GENERATE, STREAM, "countTokens"]
    return {"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": methods}


def _openai_model(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "rung"}
