"""Results of finished cells: one JSON object per line, so that a run can be interrupted and continued."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bench.clients.cells import Cell, Result

if TYPE_CHECKING:
    from pathlib import Path

_CELL = tuple(Cell.__dataclass_fields__)
_RESULT = tuple(Result.__dataclass_fields__)


class ResultStore:
    """Append-only file; the last line of a cell counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.dates: set[str] = set()
        self.found: dict[Cell, tuple[Result, str]] = {}  # cell → result, version of the client
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:
            return  # the last line of a run that was killed
        cell = Cell(**{name: row[name] for name in _CELL})
        self.found[cell] = (Result(**{name: row[name] for name in _RESULT}), row["version"])
        self.dates.add(row["date"])

    def has(self, cell: Cell, version: str) -> bool:
        """Return whether this version of the client has run this cell."""
        return cell in self.found and self.found[cell][1] == version

    def add(self, cell: Cell, result: Result, *, version: str, date: str) -> None:
        """Append a result."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        row = {**cell.to_dict(), **result.to_dict(), "version": version, "date": date}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.found[cell] = (result, version)
