"""Models that operators chose for sessions, read from the journal before each call.

A choice that a person confirmed holds for the session's next call, so there is no cache in between. Calls that wait at
the same time share a query, and none waits longer than `STORE_WAIT_SECONDS`: a store in trouble must not stop a call,
which then uses the choice as last read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from rung.gateway.sessions import session_id
from rung.store.messages import has_session_models, session_models

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.gateway.inbound_request import InboundRequest
    from rung.store.journal.journal import Journal

STORE_WAIT_SECONDS: Final = 0.5
MAX_CACHED_NAMES: Final = 10_000


class _Batch:
    """Sessions that one query asks for."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.task: asyncio.Task[None] | None = None


class PinnedModels:
    """Chosen models by session. Runs on one event loop."""

    def __init__(self, journal: Journal | None, log: Callable[[str], object]) -> None:
        self._journal, self._log = journal, log
        self._pinned: dict[str, str] = {}  # as last read
        self._is_used = False  # whether any session has a chosen model
        self._next: _Batch | None = None  # its query has not begun
        self._running: asyncio.Task[None] | None = None

    async def read(self, inbound: InboundRequest) -> str:
        """Return the model that an operator chose for the session of a request; empty if none, or the key may not use it."""
        if self._journal is None:
            return ""
        name = inbound.session
        if not name:  # its name is in the body, which is parsed only if it can matter
            if not self._is_used:
                await self._query("")
            name = session_id(inbound) if self._is_used else ""
        if not name:
            return ""
        await self._query(name)
        model = self._pinned.get(name, "")
        return model if model and inbound.may_use(model) else ""

    async def _query(self, name: str) -> None:
        """Read the choice for a session by a query that begins after this call."""
        batch = self._next
        if batch is None:
            batch = self._next = _Batch()
            batch.task = asyncio.get_running_loop().create_task(self._read(batch, self._running))
        batch.names.add(name)
        assert batch.task is not None  # noqa: S101  # set with the batch
        await asyncio.wait({batch.task}, timeout=STORE_WAIT_SECONDS)

    async def _read(self, batch: _Batch, before: asyncio.Task[None] | None) -> None:
        if before is not None:  # one query at a time: those that wait meanwhile share the next
            await asyncio.wait({before}, timeout=STORE_WAIT_SECONDS)
        self._running, self._next = batch.task, None
        assert self._journal is not None  # noqa: S101  # `read` checks it
        try:
            found = await asyncio.to_thread(session_models, self._journal, sorted(filter(None, batch.names)))
            if not self._is_used:
                self._is_used = bool(found) or await asyncio.to_thread(has_session_models, self._journal)
        except Exception as error:  # noqa: BLE001  # a store in trouble must not affect requests
            self._log(f"rung gateway: chosen models were not read: {type(error).__name__}: {error}")
            return
        if len(self._pinned) > MAX_CACHED_NAMES:
            self._pinned.clear()
        for name in batch.names:
            self._pinned.pop(name, None)
        self._pinned |= found
