"""Cells of the matrix: a client's wire, the other provider's wire, whole or streamed, a content, and a fault."""

from __future__ import annotations

from typing import Any, NamedTuple

from rung.testing.provider.reply import WIRES as LAB_WIRES
from tests.gateway.cross_wire.contents import CONTENTS

CLIENTS = UPSTREAMS = ("messages", "chat", "responses", "gemini")
assert set(map(str, LAB_WIRES)) == set(UPSTREAMS)
FAULTS = ("nothing", "own_dead", "own_breaks", "other_breaks")
_WORDS_BEFORE_CUT = 17


class Cell(NamedTuple):
    """One request of the matrix."""

    client: str
    upstream: str
    stream: bool
    content: str
    fault: str

    def __str__(self) -> str:
        return f"{self.client}-{self.upstream}-{'stream' if self.stream else 'whole'}-{self.content}-{self.fault}"

    @property
    def is_translated(self) -> bool:
        """Whether the other provider speaks another wire; otherwise it gets the client's own body."""
        return self.client != self.upstream

    @property
    def is_alone(self) -> bool:
        """Whether the client's own provider is not configured."""
        return self.fault in ("nothing", "other_breaks")

    def own_script(self) -> list[dict[str, Any]]:
        """Faults of the client's own provider."""
        if self.fault == "own_dead":
            return [{"fault": "overloaded"}]
        return [{"fault": "cut", "after": self._cut_after(self.client)}] if self.fault == "own_breaks" else []

    def other_script(self) -> list[dict[str, Any]]:
        """Faults of the other provider."""
        broken = {"fault": "cut", "after": self._cut_after(self.upstream), "request": 1}
        return [broken] if self.fault == "other_breaks" else list(CONTENTS[self.content].script)

    def _cut_after(self, wire: str) -> int:
        """Tokens before the stream breaks: in mid-text or in mid-call. A call of Gemini's API comes in one event."""
        content = CONTENTS[self.content]
        if content.calls:
            return len(content.text.split()) + (wire != "gemini")
        return 1 if content.talk.schema is not None else _WORDS_BEFORE_CUT


def _cells() -> list[Cell]:
    return [
        Cell(client, upstream, stream, content, fault)
        for client in CLIENTS
        for upstream in UPSTREAMS
        for content in CONTENTS
        for stream in (False, True)
        for fault in FAULTS
        if fault in ("nothing", "own_dead") or not CONTENTS[content].script
    ]


CELLS = _cells()
# Every pair of wires with every content; whole and streamed, and the faults, in turn.
SLICE = [
    cells[number % len(cells)]
    for number, (client, upstream, content) in enumerate(
        dict.fromkeys((c.client, c.upstream, c.content) for c in CELLS)
    )
    if (cells := [c for c in CELLS if (c.client, c.upstream, c.content) == (client, upstream, content)])
]
