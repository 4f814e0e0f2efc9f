"""The survival table as one JSON document, made from the results of the three suites; a cell that was not run is null."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import rung
from bench.clients.cells import DIRECT, DONE, GATEWAY, LITELLM, ROUTES, Cell
from bench.clients.clients import CLIENTS
from bench.clients.store import ResultStore, litellm_version
from bench.survival import repeated
from bench.walls import cells as walls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bench.clients.store import Measured
    from bench.walls.store import Measured as WallMeasured
    from bench.walls.store import WallStore

COLUMNS: Final = ("no gateway", "Rung", "LiteLLM")
FAULT, WALL, REPEATED = "fault", "wall", "repeated"
PARTS: Final = (FAULT, WALL, REPEATED)
COLUMN_OF: Final = {DIRECT: COLUMNS[0], GATEWAY: COLUMNS[1], walls.ONE: COLUMNS[1], LITELLM: COLUMNS[2]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One cell of one suite, run or not."""

    part: str
    client: str
    wire: str
    mode: str
    tries: str
    name: str  # of the fault or the wall
    column: str
    verdict: str | None = None  # None: not run
    date: str = ""
    state: str = ""
    seconds: float = 0.0  # a wall: after its end
    requests: int = 0

    @property
    def row(self) -> tuple[str, ...]:
        return self.part, self.client, self.wire, self.mode, self.tries


def fault_entries(store: ResultStore) -> Iterator[Entry]:
    """Yield the cells of `make clients`, and those behind LiteLLM."""
    for client in CLIENTS.values():
        yield from _entries(FAULT, client.cells((*ROUTES, LITELLM)), store)


def repeated_entries(store: ResultStore) -> Iterator[Entry]:
    """Yield the cells of Claude Code and Codex while every second request fails."""
    yield from _entries(REPEATED, repeated.all_cells(), store)


def _entries(part: str, cells: Iterable[Cell], store: ResultStore) -> Iterator[Entry]:
    for cell in cells:
        found = store.found[cell] if store.has(cell, CLIENTS[cell.client].version) else None
        yield _entry(part, cell, cell.fault, found, found.result.seconds if found else 0.0)


def wall_entries(store: WallStore) -> Iterator[Entry]:
    """Yield the cells of `make walls` on the routes that compare: no gateway, ours with one model, LiteLLM's."""
    for cell in walls.all_cells():
        if cell.route in COLUMN_OF:
            found = store.found[cell] if store.has(cell) else None
            yield _entry(WALL, cell, f"{cell.wall} s", found, (found.result.late or 0.0) if found else 0.0)


def _entry(
    part: str, cell: Cell | walls.Cell, name: str, found: Measured | WallMeasured | None, seconds: float
) -> Entry:
    entry = Entry(
        part=part, client=cell.client, wire=cell.wire, mode=cell.mode, tries=cell.tries, name=name, column=COLUMN_OF[cell.route]
    )  # fmt: skip
    if found is None:
        return entry
    result = found.result
    return replace(
        entry, verdict=result.verdict, date=found.date, state=found.state, seconds=seconds, requests=result.requests
    )


def document_of(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the table as a document: dates, versions, rows, and what survival took where all columns survive."""
    found = list(entries)
    rows: dict[tuple[str, ...], dict[str, list[str | None]]] = {}
    for entry in found:
        verdicts = rows.setdefault(entry.row, {}).setdefault(entry.name, [None] * len(COLUMNS))
        verdicts[COLUMNS.index(entry.column)] = entry.verdict
    dates = sorted({entry.date for entry in found if entry.date})
    ours = Counter(entry.state for entry in found if entry.column == "Rung" and entry.verdict)
    keys = ("part", "client", "wire", "mode", "tries")
    return {
        "measured": [dates[0], dates[-1]] if dates else [],
        "columns": list(COLUMNS),
        "gateways": {"Rung": rung.__version__, "LiteLLM": litellm_version()},
        "digests": dict(ours.most_common()),
        "clients": {name: CLIENTS[name].version for name in dict.fromkeys(entry.client for entry in found)},
        "took": {part: _took([entry for entry in found if entry.part == part]) for part in PARTS},
        "rows": [{**dict(zip(keys, row, strict=True)), "cells": cells} for row, cells in rows.items()],
    }


def _took(entries: list[Entry]) -> dict[str, Any]:
    """Return the median seconds and requests of each column, over the cells that survive in every column."""
    cells: dict[tuple[str, ...], dict[str, Entry]] = {}
    for entry in entries:
        if entry.verdict == DONE:
            cells.setdefault((*entry.row, entry.name), {})[entry.column] = entry
    both = [columns for columns in cells.values() if len(columns) == len(COLUMNS)]
    if not both:
        return {"cells": 0}
    of = {
        column: [
            round(median(each[column].seconds for each in both), 1),
            float(median(each[column].requests for each in both)),
        ]
        for column in COLUMNS
    }
    return {"cells": len(both), **of}


def text_of(document: dict[str, Any]) -> str:
    """Return a document as JSON, with one line for each row."""
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in document["rows"])
    head = json.dumps({**document, "rows": []}, ensure_ascii=False, indent=1)
    assert head.endswith('"rows": []\n}')
    return head.removesuffix("[]\n}") + f"[\n{rows}\n ]\n}}\n"
