"""Log of the requests that the lab received and how each ended."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie")
MAX_RECORDS: Final = 20_000  # the oldest are dropped
MAX_BODY_BYTES: Final = 64 * 2**20  # older bodies are dropped, their records are not
VISIBLE_KEY_CHARACTERS: Final = 4
_KEY_PARAMETER: Final = re.compile(r"(?<=[?&]key=)[^&]*")  # Google accepts a key in the query


@dataclass(slots=True, kw_only=True)
class RequestRecord:
    """One request: `number` counts model requests from 1; other requests have 0.

    `ended` is how the reply ended: complete, left (the client disconnected), reset, close; "" while it runs.
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
        """Return the parsed body."""
        return json.loads(self.body)

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON; keys are masked except for their end."""
        headers = {name: _mask(value) if name in SECRET_HEADERS else value for name, value in self.headers.items()}
        try:
            body = json.loads(self.body) if self.body else None
        except ValueError:
            body = self.body.decode(errors="replace")
        return {
            "number": self.number, "at": round(self.at, 6), "method": self.method,
            "path": _KEY_PARAMETER.sub("…", self.path),
            "headers": headers, "body": body, "wire": self.wire, "model": self.model, "stream": self.stream,
            "fault": self.fault, "status": self.status, "tokens": self.tokens, "ended": self.ended,
            "seconds": round(self.seconds, 6),
        }  # fmt: skip


def _mask(value: str) -> str:
    return "…" + value[-VISIBLE_KEY_CHARACTERS:] if len(value) > 2 * VISIBLE_KEY_CHARACTERS else "…"


@dataclass(slots=True)
class RequestLog:
    """The latest requests, and counts of all."""

    attempts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    entries: deque[RequestRecord] = field(default_factory=deque)
    bodies: deque[RequestRecord] = field(default_factory=deque)
    body_bytes: int = 0

    def add(self, record: RequestRecord) -> None:
        """Add a record; drop the oldest bodies and records above the limits."""
        self.entries.append(record)
        self.bodies.append(record)
        self.body_bytes += len(record.body)
        while self.body_bytes > MAX_BODY_BYTES and len(self.bodies) > 1:
            oldest = self.bodies.popleft()
            self.body_bytes -= len(oldest.body)
            oldest.body = b""
        if len(self.entries) > MAX_RECORDS:
            dropped = self.entries.popleft()
            if self.bodies[0] is dropped:
                self.body_bytes -= len(dropped.body)
                self.bodies.popleft()
