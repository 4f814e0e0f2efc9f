"""References of clients to earlier responses and items: rewritten where the provider does not have what is referred to.

After a splice the client has ids of an attempt that broke, which its provider may not keep. In memory, for as long as the
gateway runs; a reference that is not known is passed on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.wires.wire_json import INCOMPLETE_MARK, KEEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.gateway.inbound_request import InboundRequest

_MAX_REFERENCES: Final = 5_000  # the oldest are forgotten
_MARK: Final = INCOMPLETE_MARK.encode()


class ReferenceTable:
    """What stands for an id, by caller: another id, an item, a whole conversation, or None where it is left out."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def record(self, caller: str, references: Mapping[str, Any]) -> None:
        """Remember what stands for ids that this caller was given."""
        for name, replacement in references.items():
            self._found[caller, name] = replacement
        while len(self._found) > _MAX_REFERENCES:
            self._found.popitem(last=False)

    def resolve(self, inbound: InboundRequest) -> None:
        """Rewrite the references of a request, and leave out thinking that broke off. Most requests are not parsed."""
        has_ids = bool(self._found) and (b'_id"' in inbound.body or b'"id"' in inbound.body)
        if not has_ids and _MARK not in inbound.body:
            return
        body = inbound.parsed()
        changed = inbound.wire.bodies.with_references(body, lambda name: self._found.get((inbound.caller, name), KEEP))
        if changed is not body:
            inbound.replace_body(changed)
