"""What the lab was really asked, and what became of it."""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET: Final = ("authorization", "x-api-key", "api-key", "cookie")
KEPT: Final = 20_000  # requests
KEPT_BYTES: Final = 64 * 2**20  # of bodies; older ones are forgotten, their requests are not
SHOWN: Final = 4


@dataclass(slots=True, kw_only=True)
class RequestRecord:
    """One request: `number` counts those that ask a model, from 1; others have 0.

    `ended` is how it ended on our side: complete, left (the client went away), reset, close; "" while it runs.
    """

    number: int
    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    wire: str = ""
    model: str = ""
    stream: bool = False
    fault: str = ""
    status: int = 0
    tokens: int = 0  # sent
    ended: str = ""
    seconds: float = 0.0

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    def table(self) -> dict[str, Any]:
        """All of it as JSON; of keys only the end is shown."""
        headers = {name: _hidden(value) if name in SECRET else value for name, value in self.headers.items()}
        try:
            body = json.loads(self.body) if self.body else None
        except ValueError:
            body = self.body.decode(errors="replace")
        return {
            "number": self.number, "at": round(self.at, 6), "method": self.method, "path": self.path,
            "headers": headers, "body": body, "wire": self.wire, "model": self.model, "stream": self.stream,
            "fault": self.fault, "status": self.status, "tokens": self.tokens, "ended": self.ended,
            "seconds": round(self.seconds, 6),
        }  # fmt: skip


def _hidden(value: str) -> str:
    return "…" + value[-SHOWN:] if len(value) > 2 * SHOWN else "…"


@dataclass(slots=True)
class RequestLog:
    """The last requests, and the count of all."""

    attempts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kept: deque[RequestRecord] = field(default_factory=deque)
    bodies: deque[RequestRecord] = field(default_factory=deque)
    held: int = 0

    def add(self, record: RequestRecord) -> None:
        """Keep one more; the oldest go."""
        self.kept.append(record)
        self.bodies.append(record)
        self.held += len(record.body)
        while self.held > KEPT_BYTES and len(self.bodies) > 1:
            oldest = self.bodies.popleft()
            self.held -= len(oldest.body)
            oldest.body = b""
        if len(self.kept) > KEPT:
            gone = self.kept.popleft()
            if self.bodies[0] is gone:
                self.held -= len(gone.body)
                self.bodies.popleft()
