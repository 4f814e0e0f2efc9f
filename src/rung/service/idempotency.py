"""Idempotent writes: a repeated Idempotency-Key gets the stored response of the first request."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from fastapi import Header

from rung.core.domain.failures import short_hash
from rung.service.problems import ApiProblem
from rung.store.idempotency import claim_key, release_key, store_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from rung.service.app_context import AppContext
    from rung.service.auth import Principal

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="A repeated request with the same key gets the first response and has no further effect.",
    ),
]
KEEP_SECONDS: Final = 86_400.0
M = TypeVar("M", bound="BaseModel")


def run_idempotent(
    context: AppContext,
    key: str | None,
    principal: Principal,
    operation: str,
    body: BaseModel,
    response_type: type[M],
    action: Callable[[], M],
    is_final: Callable[[M], bool] = lambda _: True,
) -> M:
    """Run the action unless this key has a stored response; reject a key reused for another request.

    A response that is not final has done nothing: the key stays free.
    """
    if key is None:
        return action()
    name = f"{principal.token_hash[:16]}/{key}"
    digest = short_hash(f"{operation}\n{body.model_dump_json()}", 16)
    stored = claim_key(context.journal, name, digest, time.time(), keep_seconds=KEEP_SECONDS)
    if stored is not None:
        if stored.digest != digest:
            raise ApiProblem(422, "this Idempotency-Key was used for another request", field="Idempotency-Key")
        if not stored.body:
            raise ApiProblem(409, "the first request with this Idempotency-Key is still running")
        return response_type.model_validate(json.loads(stored.body))
    try:
        response = action()
    except BaseException:
        release_key(context.journal, name)
        raise
    if not is_final(response):
        release_key(context.journal, name)
        return response
    store_response(context.journal, name, response.model_dump_json(by_alias=True))
    return response
