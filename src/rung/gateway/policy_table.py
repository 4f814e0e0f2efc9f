"""Policies of a gateway's projects: those of its file, changed by what operators have stored in the service.

One query reads the stored settings of all projects. It is made before the first call of a project that is new to the
gateway, before the first decision about a failed call, and before any other call if the last one is `CALL_AGE_SECONDS`
old. Calls that need it at the same time share it. If the store does not answer in `STORE_WAIT_SECONDS`, they use the
policies as last read.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.events import IncidentContext
from rung.core.recovery.stream_rules import for_streams
from rung.wiring.policies import PolicyStore, project_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.parser import PolicyBook
    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal
    from rung.store.settings import StoredSetting

CALL_AGE_SECONDS: Final = 0.5
STORE_WAIT_SECONDS: Final = 0.5
_MAX_SEEN: Final = 10_000  # clients choose the names of projects
_TOOL: Final = "gateway"  # `[tools.gateway]` of the file


class PolicyTable:
    """Policies by project. Runs on one event loop."""

    def __init__(
        self, book: PolicyBook, journal: Journal | None, now: Callable[[], float], log: Callable[[str], object]
    ) -> None:
        self._journal, self._now, self._log = journal, now, log
        self._seen: set[str] = set()
        self._reading: asyncio.Task[None] | None = None
        self._read_from = -inf  # when the running read began
        self._read_at = -inf  # when the last read began that has ended
        self.use_book(book)

    def use_book(self, book: PolicyBook) -> None:
        """Use the policies of a file; what is stored is read again before the next call."""
        self._book = book
        self._read_at = -inf
        policies = {name: for_streams(book.policy_for(project=name, tool=_TOOL)) for name in ("", *book.projects)}
        self._use(policies, None)

    def _use(self, policies: dict[str, Policy], stored: list[StoredSetting] | None) -> None:
        """Use these policies, by the names of projects that have one of their own; all others share the default."""
        # A limit that reopens later is passed on at once: a client cannot be kept waiting for hours.
        self._policies = {name: policy.replace(park=0.0) for name, policy in policies.items()}
        self._stored = stored
        self._contexts: dict[str, IncidentContext] = {}

    def get(self, project: str) -> Policy:
        """Return the policy of a project."""
        return self._policies.get(project) or self._policies[""]

    def incident_context(self, project: str, session: str) -> IncidentContext:
        """Return the context of an incident of this project."""
        name = project if project in self._policies else ""
        context = self._contexts.get(name)
        if context is None:
            policy = self.get(name)
            rungs = tuple(rung.name for rung in policy.ladder.rungs)
            tries = tuple(rung.tries for rung in policy.ladder.rungs)
            names = (policy.ladder.name, policy.name)
            context = IncidentContext(*names, False, False, rungs, name, tries=tries)  # as declared
            self._contexts[name] = context
        return context._replace(project=project, session=session) if session or project != name else context

    async def prepare(self, project: str) -> None:
        """Read the stored policies before a call, if they may have changed or the project is new."""
        if project in self._seen:
            await self.refresh(CALL_AGE_SECONDS)
            return
        if len(self._seen) >= _MAX_SEEN:
            self._seen.clear()
        self._seen.add(project)
        await self.refresh()

    async def refresh(self, max_age: float = 0.0) -> None:
        """Read the stored policies unless a read began in the last `max_age` seconds; wait a bounded time for it."""
        now = self._now()
        if self._journal is None or now - self._read_at <= max_age:
            return
        if self._reading is None or self._reading.done():
            self._start_read(now)
        elif self._read_from < now - max_age:  # a read that runs may have missed the newest change
            await self._wait_for_read(now)
            if self._reading.done() and self._read_at < now - max_age:
                self._start_read(now)
        await self._wait_for_read(now)

    def _start_read(self, now: float) -> None:
        self._read_from = now
        self._reading = asyncio.get_running_loop().create_task(self._read(now))

    async def _wait_for_read(self, now: float) -> None:
        """Wait for the running read, but not for one that a store in trouble has kept for too long."""
        assert self._reading is not None  # noqa: S101  # callers start it
        left = self._read_from + STORE_WAIT_SECONDS - now
        if left > 0:
            await asyncio.wait({self._reading}, timeout=left)

    async def _read(self, began: float) -> None:
        assert self._journal is not None  # noqa: S101  # the caller checks it
        store = PolicyStore(self._journal, self._book)
        try:
            stored = await asyncio.to_thread(store.all_stored)
            if stored != self._stored:
                policies = await asyncio.to_thread(self._effective, store, stored)
                if store.book is self._book:  # the settings were not reloaded meanwhile
                    self._use(policies, stored)
        except Exception as error:  # noqa: BLE001  # a store in trouble must not affect requests
            self._log(f"rung gateway: policies were not read: {type(error).__name__}: {error}")
        if store.book is self._book:
            self._read_at = began

    def _effective(self, store: PolicyStore, stored: list[StoredSetting]) -> dict[str, Policy]:
        """Return the policies by project, with the changes that operators made in the service.

        One that is not valid, such as one of another version, is logged and affects only its project.
        """
        prefix = project_key("")
        own = [setting.name.removeprefix(prefix) for setting in stored if setting.name.startswith(prefix)]
        policies: dict[str, Policy] = {}
        for name in ("", *store.book.projects, *own):
            try:
                policies[name] = for_streams(store.effective(name, _TOOL))
            except ConfigError as error:
                policies[name] = self.get(name)
                subject = f"the stored policy of project {name!r}" if name else "the stored default policy"
                self._log(f"rung gateway: {subject} is not valid, so the last one stays: {error}")
        return policies
