"""What agents look up beside calls of a model: which models there are, how many tokens a request has.

Both are asked of the upstream, and again while it fails for a moment. An upstream that cannot say which models there
are is answered for by the policy's own list. Tokens are never guessed: a client that is told a number takes it for a
count, so that one it cannot have is an error, and agents then estimate for themselves, knowing that they do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import AttemptError
from rung.core.domain.request import Request
from rung.engine.recover import recover
from rung.gateway import response as answers
from rung.gateway.http.port import read_body, text_headers
from rung.gateway.response import GatewayResponse
from rung.wires.registry import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.outcome import Outcome
    from rung.gateway.gateway import Gateway
    from rung.gateway.settings import UpstreamSettings
    from rung.wires.registry import WireFormat

MODELS: Final = "/v1/models"
COUNT: Final = "/v1/messages/count_tokens"
_BAD: Final = 400
_NONE: Final = frozenset({404, 405, 501})  # it has no such thing
_HERE: Final = (b"x-rung-answered-by", b"gateway")


def is_lookup(method: str, path: str) -> bool:
    """Is it one of these?"""
    if path == COUNT:
        return method == "POST"
    return method == "GET" and (path == MODELS or path.startswith(MODELS + "/"))


async def look_up(
    gateway: Gateway,
    wire: WireFormat,
    upstream: UpstreamSettings,
    path: str,
    asked: tuple[str, str, list[tuple[bytes, bytes]], bytes],
    models: Sequence[str] = (),
) -> GatewayResponse:
    """The answer to one: the upstream's, else ours. `models` are those that a key is for."""
    if models and path != COUNT:
        return _listed(wire, path, models)
    last: list[GatewayResponse] = []
    policy = gateway.policy("").replace(models=(), agents=())  # another model would say something else

    async def attempt(_: Request) -> GatewayResponse:
        last.clear()
        async with asyncio.timeout(gateway.settings.timeouts.total):
            response = await gateway.client.send(upstream, *asked)
            try:
                body = await read_body(response)
            finally:
                response.close()
        answer = GatewayResponse(response.status, answers.passed(response.raw_headers), body)
        if answer.status >= _BAD:
            last.append(answer)
            raise AttemptError.of(
                evidence_of({"status": answer.status, "headers": text_headers(response), "body": body})
            )
        return answer

    outcome: Outcome[GatewayResponse] = await recover(
        attempt,
        Request(prompt=path),
        policy=policy,
        key=f"{upstream.name}{path}",
        breakers=gateway.breakers,
        retry_budget=gateway.retry_budget,
    )
    if outcome.value is not None:
        return outcome.value
    if path != COUNT and (not last or last[0].status in _NONE or last[0].status >= 500):  # noqa: PLR2004  # HTTP
        known = [model.name for model in gateway.policy("").models]
        if known:
            return _listed(wire, path, known)
    if last:
        return last[0]._replace(headers=[*last[0].headers, (b"x-should-retry", b"false")])
    assert outcome.failure is not None  # noqa: S101  # what did not end well has failed
    text = outcome.failure.message.strip().partition("\n")[0][:300]
    return answers.error(wire, answers.status_of(outcome.failure.kind), f"{upstream.name} could not be asked: {text}")


def _listed(wire: WireFormat, path: str, models: Sequence[str]) -> GatewayResponse:
    """The list of models, or one of them, in the shape of a wire."""
    shown = _of_anthropic if wire is MESSAGES else _of_openai
    wanted = path.removeprefix(MODELS).strip("/")
    if not wanted:
        found: dict[str, Any] = {"data": [shown(model) for model in models]}
        found |= {"has_more": False, "first_id": models[0], "last_id": models[-1]} if wire is MESSAGES else {}
        found |= {} if wire is MESSAGES else {"object": "list"}
    elif wanted in models:
        found = shown(wanted)
    else:
        return answers.error(wire, 404, f"there is no model {wanted!r} here: there are {', '.join(models)}")
    return GatewayResponse(200, [(b"content-type", b"application/json"), _HERE], orjson.dumps(found))


def _of_anthropic(model: str) -> dict[str, Any]:
    return {"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}


def _of_openai(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "rung"}
