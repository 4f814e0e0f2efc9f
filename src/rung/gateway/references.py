"""References of clients to earlier responses and items: rewritten where the provider does not have what is referred to.

After a splice the client has ids of an attempt that broke, which its provider may not keep. A journal keeps what stands
for them, so that they survive a restart and are known to every gateway with that journal; without one, they are forgotten
with the process. A reference that is not known is passed on: the provider answers it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.store.references import MAX_REFERENCES, load_references, name_of, store_references
from rung.wires.wire_json import INCOMPLETE_MARK, KEEP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.gateway.inbound_request import InboundRequest
    from rung.store.journal.journal import Journal

_MARK: Final = INCOMPLETE_MARK.encode()
_STORE_SECONDS: Final = 5.0  # the client waits for the end of its answer meanwhile
_OVERLAP_SECONDS: Final = 60.0  # clocks of gateways that share a journal may differ


class ReferenceTable:
    """What stands for an id, by caller: another id, an item, a whole conversation, or None where it is left out."""

    def __init__(self, journal: Journal | None, log: Callable[[str], object], now: Callable[[], float]) -> None:
        self._found: OrderedDict[str, Any] = OrderedDict()
        self._journal = journal
        self._log = log
        self._now = now
        self._loaded_until = 0.0

    def __len__(self) -> int:
        return len(self._found)

    async def record(self, caller: str, references: Mapping[str, Any]) -> None:
        """Remember what stands for ids that this caller was given, durably before the answer ends."""
        named = {name_of(caller, name): replacement for name, replacement in references.items()}
        self._add(named)
        if self._journal is None:
            return
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await asyncio.to_thread(store_references, self._journal, named, self._now())
        except Exception as error:  # noqa: BLE001  # the answer is whole, whatever the store does
            self._log(f"rung gateway: references are lost with this process: {type(error).__name__}: {error}")

    async def load(self) -> None:
        """Read what was stored since the last time, by an earlier process or another gateway."""
        if self._journal is None:
            return
        since = self._loaded_until - _OVERLAP_SECONDS
        stored = await asyncio.to_thread(load_references, self._journal, since, self._found)
        self._add({each.name: each.replacement for each in stored})
        self._loaded_until = max((each.at for each in stored), default=self._loaded_until)

    def _add(self, named: Mapping[str, Any]) -> None:
        self._found.update(named)
        while len(self._found) > MAX_REFERENCES:
            self._found.popitem(last=False)

    def resolve(self, inbound: InboundRequest) -> None:
        """Rewrite the references of a request, and leave out thinking that broke off. Most requests are not parsed."""
        has_ids = bool(self._found) and (b'_id"' in inbound.body or b'"id"' in inbound.body)
        if not has_ids and _MARK not in inbound.body:
            return
        body = inbound.parsed()
        changed = inbound.wire.bodies.with_references(
            body, lambda name: self._found.get(name_of(inbound.caller, name), KEEP)
        )
        if changed is not body:
            inbound.replace_body(changed)
