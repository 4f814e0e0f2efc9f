"""Acts that happen once: an idempotency key gets the answer it got the first time."""

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
        description="Sent again, it gets the same answer, and nothing is done twice.",
    ),
]
KEEP_SECONDS: Final = 86_400.0  # seconds for which an answer is remembered
M = TypeVar("M", bound="BaseModel")


def run_idempotent(
    hub: AppContext, key: str | None, who: Principal, about: str, asked: BaseModel, kind: type[M], act: Callable[[], M]
) -> M:
    """Act, unless this key has been answered; a key that comes with another act is refused."""
    if key is None:
        return act()
    name = f"{who.token_hash[:16]}/{key}"
    digest = short_hash(f"{about}\n{asked.model_dump_json()}", 16)
    stored = claim_key(hub.journal, name, digest, time.time(), keep_seconds=KEEP_SECONDS)
    if stored is not None:
        if stored.digest != digest:
            raise ApiProblem(422, "this Idempotency-Key was used for something else", field="Idempotency-Key")
        if not stored.body:
            raise ApiProblem(409, "the first request with this Idempotency-Key has not ended yet")
        return kind.model_validate(json.loads(stored.body))
    try:
        answer = act()
    except BaseException:
        release_key(hub.journal, name)
        raise
    store_response(hub.journal, name, answer.model_dump_json(by_alias=True))
    return answer
