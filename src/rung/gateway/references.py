"""References of clients to earlier responses and items: rewritten where the provider does not have what is referred to.

After a splice the client has ids of an attempt that broke, which its provider may not keep; those of a translated answer
no provider has. A journal keeps what stands for them, so that they survive a restart and are known to every gateway with
that journal; without one, they are forgotten with the process. The oldest go first, by number and by size. A reference
that is not known is passed on: the provider answers it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rung.store.references import MAX_REFERENCES, load_references, name_of, store_references
from rung.wires.wire_json import INCOMPLETE_MARK, KEEP, dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.gateway.inbound_request import InboundRequest
    from rung.store.journal.journal import Journal

_MARK: Final = INCOMPLETE_MARK.encode()
MAX_BYTES: Final = 64 * 1024 * 1024  # of all replacements, as JSON: each may be a whole conversation
_MIN_LARGE: Final = 4  # at least so many replacements have room: a larger one would cost all others
_STORE_SECONDS: Final = 5.0  # the client waits for the end of its answer meanwhile
_OVERLAP_SECONDS: Final = 60.0  # clocks of gateways that share a journal may differ


class ReferenceTable:
    """Replacements of ids, by caller: another id, an item, a whole conversation, or None where it is left out."""

    def __init__(
        self,
        journal: Journal | None,
        log: Callable[[str], object],
        now: Callable[[], float],
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._references: OrderedDict[str, bytes] = OrderedDict()  # as JSON, the oldest first
        self._size = 0  # bytes of all of them
        self._max_bytes = max_bytes
        self._forgotten: set[str] = set()  # names that the journal may still have
        self._journal = journal
        self._log = log
        self._now = now
        self._loaded_until = 0.0

    def __len__(self) -> int:
        return len(self._references)

    async def record(self, caller: str, references: Mapping[str, Any]) -> None:
        """Remember what stands for ids that this caller was given, durably before the answer ends."""
        named = {name_of(caller, name): replacement for name, replacement in references.items()}
        self._add(named)
        if self._journal is None:
            self._forgotten.clear()
            return
        kept = {name: replacement for name, replacement in named.items() if name in self._references}
        if not kept:
            return
        forgotten, self._forgotten = self._forgotten, set()
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await asyncio.to_thread(store_references, self._journal, kept, self._now(), forgotten=sorted(forgotten))
        except Exception as error:  # noqa: BLE001  # the answer is whole, whatever the store does
            self._log(f"rung gateway: references are lost with this process: {type(error).__name__}: {error}")

    async def load(self) -> None:
        """Read what was stored since the last time, by an earlier process or another gateway."""
        if self._journal is None:
            return
        since = self._loaded_until - _OVERLAP_SECONDS
        known = self._references.keys() | self._forgotten
        stored = await asyncio.to_thread(load_references, self._journal, since, known)
        self._add({each.name: each.replacement for each in stored})
        self._loaded_until = max((each.at for each in stored), default=self._loaded_until)

    def _add(self, named: Mapping[str, Any]) -> None:
        for name, replacement in named.items():
            self._size -= len(self._references.pop(name, b""))
            data = dump_json(replacement)
            if len(data) <= self._max_bytes // _MIN_LARGE:
                self._references[name] = data
                self._size += len(data)
        while len(self._references) > MAX_REFERENCES or self._size > self._max_bytes:
            name, data = self._references.popitem(last=False)
            self._size -= len(data)
            self._forgotten.add(name)

    def _find(self, caller: str, name: str) -> Any:
        data = self._references.get(name_of(caller, name))
        return KEEP if data is None else load_json(data)

    def resolve(self, inbound: InboundRequest) -> None:
        """Rewrite the references of a request, and leave out thinking that broke off. Most requests are not parsed."""
        has_ids = bool(self._references) and (b'_id"' in inbound.body or b'"id"' in inbound.body)
        if not has_ids and _MARK not in inbound.body:
            return
        body = inbound.parsed()
        changed = inbound.wire.bodies.with_references(body, partial(self._find, inbound.caller))
        if changed is not body:
            inbound.replace_body(changed)
