"""Results of finished cells: a line for each while the suite runs, and a committed file with a line for each row."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import rung
from bench.clients.cells import DIRECT, LITELLM, Cell, Result

if TYPE_CHECKING:
    from collections.abc import Iterable

LITELLM_LOCK: Final = Path(__file__).parents[2] / "requirements/litellm.txt"
SAVED: Final = Path(__file__).parent / "results.jsonl"
SAVED_ACROSS: Final = Path(__file__).parent / "results-across.jsonl"
_ROW: Final = ("client", "wire", "mode", "tries", "route")
_RESULT: Final = tuple(Result.__dataclass_fields__)
_SAVED: Final = tuple(name for name in _RESULT if name != "note")  # notes have paths of this machine
_MARKS: Final = ("version", "date", "state")


class Measured(NamedTuple):
    """The result of a cell, and what it was measured with."""

    result: Result
    version: str  # of the client
    date: str
    state: str  # of the gateway: a digest of Rung's, the version of LiteLLM; empty without one


def gateway_state() -> str:
    """Return a digest of Rung's source files: results behind different ones do not compare."""
    root = Path(rung.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def litellm_version() -> str:
    """Return the locked version of LiteLLM's proxy."""
    found = re.search(r"^litellm==(\S+)", LITELLM_LOCK.read_text(), re.MULTILINE)
    assert found is not None, LITELLM_LOCK
    return found[1]


class ResultStore:
    """Append-only file of this machine over the committed results; the last line of a cell counts."""

    def __init__(self, path: Path, saved: Path = SAVED) -> None:
        self._path = path
        self._saved = saved
        self.state = gateway_state()
        self.found: dict[Cell, Measured] = {}
        for row in lines_of(saved):
            for fault, values in row.pop("cells").items():
                self._add({**row, "fault": fault, **dict(zip(_SAVED, values, strict=True)), "note": ""})
        for row in lines_of(path):
            self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        cell = Cell(**{name: row[name] for name in (*_ROW, "fault")})
        result = Result(**{name: row[name] for name in _RESULT})
        self.found[cell] = Measured(result, *(row.get(name, "") for name in _MARKS))

    def has(self, cell: Cell, version: str) -> bool:
        """Return whether this version of the client has run this cell."""
        return cell in self.found and self.found[cell].version == version

    def is_stale(self, cell: Cell) -> bool:
        """Return whether a cell was measured behind another state of the gateway."""
        return self.found[cell].state != self._state_of(cell)

    def _state_of(self, cell: Cell) -> str:
        return {DIRECT: "", LITELLM: litellm_version()}.get(cell.route, self.state)

    def add(self, cell: Cell, result: Result, *, version: str, date: str) -> None:
        """Append a result."""
        state = self._state_of(cell)
        self.found[cell] = Measured(result, version, date, state)
        row = {**cell.to_dict(), **result.to_dict(), "version": version, "date": date, "state": state}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def save(self, cells: Iterable[Cell]) -> None:
        """Write the committed file: the results of these cells, in their order."""
        rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for cell in cells:
            if cell in self.found:
                measured = self.found[cell]
                key = {**cell.to_dict(), **dict(zip(_MARKS, measured[1:], strict=True))}
                key.pop("fault")
                row = rows.setdefault(tuple(key.values()), {**key, "cells": {}})
                row["cells"][cell.fault] = [getattr(measured.result, name) for name in _SAVED]
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows.values()]
        self._saved.write_text("".join(lines), encoding="utf-8")


def lines_of(path: Path) -> Iterable[dict[str, Any]]:
    """Yield the rows of a file; none if it does not exist."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
