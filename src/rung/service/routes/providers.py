"""Provider route: the upstreams of the gateways that run on this journal, with their keys and health."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from pydantic import ValidationError

from rung.service.app_context import Context, Reader
from rung.service.problems import PROBLEM_RESPONSES
from rung.service.schemas.providers import ProviderOut
from rung.store.replay_orders import present_statuses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

router = APIRouter(prefix="/api", tags=["providers"], responses=PROBLEM_RESPONSES)


@router.get("/providers")
def providers(context: Context, _: Reader) -> list[ProviderOut]:
    """The upstreams of the running gateways: keys, health, translated calls, dropped fields and cost."""
    statuses = present_statuses(context.journal, time.time())
    return [provider for name, status in sorted(statuses.items()) for provider in _providers(name, status)]


def _providers(gateway: str, status: Mapping[str, Any]) -> Iterator[ProviderOut]:
    """Yield the upstreams of a gateway; leave out what a gateway of another version says in another way."""
    for upstream in status.get("upstreams", ()):
        about = {"gateway": gateway, "at": status.get("at"), "started_at": status.get("started_at")}
        with suppress(ValidationError, TypeError):
            yield ProviderOut.model_validate({**upstream, **about})
