"""What the rows of a document say: scores, cells that were not run, and cells in which Rung loses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.clients.cells import DONE, PLAIN, UNMET

OURS = "Rung"


class Loss(NamedTuple):
    """A cell that Rung does not survive, and the columns that do."""

    name: str
    verdict: str
    survivors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One client with one wire, mode and setting of its own tries in one part."""

    part: str
    client: str
    wire: str
    mode: str
    tries: str
    cells: dict[str, dict[str, str | None]] = field(default_factory=dict)  # fault → column → verdict

    def count(self, column: str) -> Counter[str]:
        """Return the verdicts of a column over the faults; "" counts what was not run, and what did not strike is left out."""
        found = Counter(verdicts[column] or "" for name, verdicts in self.cells.items() if name != PLAIN)
        found.pop(UNMET, None)
        return found

    @property
    def is_complete(self) -> bool:
        return all(None not in verdicts.values() for verdicts in self.cells.values())

    def losses(self) -> list[Loss]:
        """Return the cells in which another column ends well and Rung does not."""
        return [failure for failure in self.failures() if failure.survivors]

    def failures(self) -> list[Loss]:
        """Return the cells in which Rung does not end well."""
        found = []
        for name, verdicts in self.cells.items():
            ours = verdicts[OURS]
            better = tuple(column for column, verdict in verdicts.items() if column != OURS and verdict == DONE)
            if ours not in (None, DONE, UNMET):
                found.append(Loss(name, str(ours), better))
        return found


def rows_of(document: dict[str, Any]) -> list[Row]:
    """Return the rows of a document."""
    columns = document["columns"]
    return [
        Row(
            **{name: row[name] for name in ("part", "client", "wire", "mode", "tries")},
            cells={name: dict(zip(columns, verdicts, strict=True)) for name, verdicts in row["cells"].items()},
        )
        for row in document["rows"]
    ]


def score(found: Counter[str]) -> str:
    """Return how many faults were survived of those that struck, and how many were not run."""
    struck = found.total() - found[""]
    if not struck:
        return "not run" if found[""] else "-"
    missing = f", {found['']} not run" if found[""] else ""
    return f"{found[DONE]}/{struck}{missing}"
