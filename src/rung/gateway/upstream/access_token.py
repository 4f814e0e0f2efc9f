"""Access tokens that expire: fetched in a thread, refreshed before they expire, at most one fetch at a time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

REFRESH_SECONDS: Final = 300.0  # before a token expires, it is refreshed while calls still use it
RETRY_SECONDS: Final = 30.0  # after a refresh that failed while the old token is still valid
_MARGIN_SECONDS: Final = 10.0  # a token that expires sooner may be refused when it arrives


class AccessToken(NamedTuple):
    """Token and the time when it expires, in seconds since 1970."""

    value: str
    expires_at: float


class TokenCache:
    """The current token of one identity. Runs on one event loop."""

    def __init__(self, fetch: Callable[[], AccessToken], now: Callable[[], float] = time.time) -> None:
        self._fetch = fetch  # blocks
        self._now = now
        self._token = AccessToken("", 0.0)
        self._refresh_at = 0.0
        self._fetching: asyncio.Task[None] | None = None

    async def get(self) -> str:
        """Return a valid token. Wait for a new one only if there is none; raise the error if it cannot be fetched."""
        now = self._now()
        if now < self._refresh_at:
            return self._token.value
        fetching = self._start()
        if now >= self._token.expires_at - _MARGIN_SECONDS:
            await asyncio.shield(fetching)  # a caller that leaves does not end the fetch for the others
        return self._token.value

    def _start(self) -> asyncio.Task[None]:
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._refresh())
            self._fetching.add_done_callback(self._note_end)
        return self._fetching

    async def _refresh(self) -> None:
        self._token = await asyncio.to_thread(self._fetch)
        # A token with a short life is refreshed in the second half of it.
        left = self._token.expires_at - self._now()
        self._refresh_at = self._token.expires_at - min(REFRESH_SECONDS, left / 2)

    def _note_end(self, fetching: asyncio.Task[None]) -> None:
        self._fetching = None
        if fetching.cancelled() or fetching.exception() is not None:
            self._refresh_at = min(self._now() + RETRY_SECONDS, self._token.expires_at - _MARGIN_SECONDS)
