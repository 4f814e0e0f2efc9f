"""Limits on requests in progress: one token cannot occupy the whole service."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rung.service.problems import ApiProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.service.auth import Principal

MAX_HEAVY: Final = 4  # exports and backtests in progress: each reads the whole journal
MAX_HEAVY_PER_TOKEN: Final = 2
MAX_REQUESTS: Final = 200  # in progress, without event streams
MAX_REQUESTS_PER_TOKEN: Final = 24  # fewer than the threads that run the routes
RETRY_SECONDS: Final = 5.0


class ConcurrencyLimit:
    """Bounds the requests in progress, in total and per token. Excess requests are rejected, not queued."""

    def __init__(self, what: str, total: int, per_token: int) -> None:
        self._what = what
        self._total = total
        self._per_token = per_token
        self._lock = threading.Lock()
        self._in_progress: Counter[str] = Counter()

    @contextmanager
    def slot(self, principal: Principal) -> Iterator[None]:
        """Hold one slot; raise a 429 problem if none is free."""
        name = principal.token_hash
        with self._lock:
            own, all_ = self._in_progress[name], self._in_progress.total()
            if own >= self._per_token or all_ >= self._total:
                count = f"{own} of this token" if own >= self._per_token else f"{all_} in total"
                raise ApiProblem(429, f"too many {self._what} in progress ({count})", retry_after=RETRY_SECONDS)
            self._in_progress[name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_progress[name] -= 1
                if not self._in_progress[name]:
                    del self._in_progress[name]
