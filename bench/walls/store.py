"""Results of finished cells: a line for each, in a file of this machine while the suite runs and in a committed one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.clients.clients import CLIENTS
from bench.clients.store import gateway_state, lines_of
from bench.walls.cells import OURS, Cell, Result, all_cells

if TYPE_CHECKING:
    from collections.abc import Iterable

SAVED: Final = Path(__file__).parent / "results.jsonl"
_CELL: Final = tuple(Cell.__dataclass_fields__)
_RESULT: Final = tuple(Result.__dataclass_fields__)
_MARKS: Final = ("version", "date", "state")


class Measured(NamedTuple):
    """The result of a cell, and what it was measured with."""

    result: Result
    version: str  # of the client
    date: str
    state: str  # of the gateway; empty without one


class WallStore:
    """Append-only file of this machine over the committed results; the last line of a cell counts."""

    def __init__(self, path: Path, saved: Path = SAVED) -> None:
        self._path, self._saved = path, saved
        self.state = gateway_state()
        self.found: dict[Cell, Measured] = {}
        for row in (*lines_of(saved), *lines_of(path)):
            cell = Cell(**{name: row[name] for name in _CELL})
            result = Result(**{name: row[name] for name in _RESULT if name in row})
            self.found[cell] = Measured(result, *(row.get(name, "") for name in _MARKS))

    def has(self, cell: Cell) -> bool:
        """Return whether the client's locked version has run this cell."""
        return cell in self.found and self.found[cell].version == CLIENTS[cell.client].version

    def is_stale(self, cell: Cell) -> bool:
        """Return whether a cell was measured behind another state of the gateway."""
        return cell.route in OURS and self.found[cell].state != self.state

    def add(self, cell: Cell, result: Result, date: str) -> None:
        """Append a result."""
        state = self.state if cell.route in OURS else ""
        measured = self.found[cell] = Measured(result, CLIENTS[cell.client].version, date, state)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(cell, measured))

    def save(self) -> None:
        """Write the committed file, in the order of the cells."""
        cells: Iterable[Cell] = (cell for cell in all_cells() if self.has(cell))
        bare = {cell: self.found[cell]._replace(result=_without_note(self.found[cell].result)) for cell in cells}
        self._saved.write_text("".join(_line(*each) for each in bare.items()), encoding="utf-8")


def _without_note(result: Result) -> Result:
    """Return a result without its note, which has paths of this machine."""
    return Result(**{**result.to_dict(), "note": ""})


def _line(cell: Cell, measured: Measured) -> str:
    result: dict[str, Any] = measured.result.to_dict()
    if not result["note"]:
        del result["note"]
    row = {**cell.to_dict(), **result, **dict(zip(_MARKS, measured[1:], strict=True))}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
