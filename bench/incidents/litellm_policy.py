"""LiteLLM's router with its documented defaults: two retries a model group, then the next group of `fallbacks`.

https://docs.litellm.ai/docs/router/learn/reliability and https://docs.litellm.ai/docs/router/api_reference/configuration
(num_retries 2, allowed_fails 3, cooldown_time 5 s). A group with one deployment is not cooled down, so that retries
go to the same deployment after 0.5 s, doubled up to 8 s, with a jitter of three quarters of it (litellm 1.106).
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from bench.incidents.clients import Answer, answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.incidents.world import Call, Upstream

RETRIES: Final = 2
FIRST_WAIT: Final = 0.5
MAX_WAIT: Final = 8.0
JITTER: Final = 0.75


class LiteLLM:
    """One deployment in each model group; the groups are tried in order."""

    def __init__(self, upstreams: Sequence[Upstream], began: float) -> None:
        self._upstreams, self._began = upstreams, began

    async def send(self, call: Call, attempt: int, *, stream: bool) -> Answer:
        """Send a request through the router."""
        for upstream in self._upstreams:
            for retry in range(RETRIES + 1):
                if await answered(upstream, call, self._began):
                    return Answer(is_ok=True)
                if retry < RETRIES:
                    wait = min(FIRST_WAIT * 2**retry, MAX_WAIT)
                    await asyncio.sleep(wait + JITTER * wait * random.random())
        return Answer(is_ok=False)
