"""Record of lost writes: how many successful calls and other writes the journal could not keep, in the audit trail."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, Readable

LOST_ACTION: Final = "journal.lost"


class LostWrites(NamedTuple):
    """Numbers of successful calls that were not recorded, and of other writes that were lost."""

    successful_calls: int
    writes: int


def record_lost(connection: BackendConnection, calls: int, writes: int) -> None:
    """Add the numbers to the audit trail."""
    values = (time.time(), "rung", LOST_ACTION, "journal", json.dumps(LostWrites(calls, writes)._asdict()))
    connection.execute("INSERT INTO audit (at, who, action, subject, detail) VALUES (?, ?, ?, ?, ?)", values)


def lost_writes(database: Readable) -> LostWrites:
    """Return the sum of all recorded losses."""
    rows = database.read("SELECT detail FROM audit WHERE subject = 'journal' AND action = ?", (LOST_ACTION,))
    details = [json.loads(detail) for (detail,) in rows]
    return LostWrites(sum(one["successful_calls"] for one in details), sum(one["writes"] for one in details))
