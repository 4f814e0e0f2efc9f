"""Sections about faults: walls of overload, faults survived, the SDK matrix, and recorded incidents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bench.clients.cells import DONE
from bench.results.bars import bars_of, picture
from bench.results.section import Comparison, Measure, Section
from bench.survival.document import FAULT, REPEATED, WALL
from bench.survival.scores import OURS, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.results.record import Record
    from bench.survival.scores import Row

_WALLS = "Real clients do a small task while their provider refuses every request for 30 to 600 seconds. [All cells](reference/walls.md)."
_FAULTS = "Thirty real clients do the same small task while requests fail, by faults of every sort. A cell is survived if the client ends with the whole answer and its tool ran exactly once. [All cells](survival.md)."
_MATRIX = "Every fault of `rung lab` with the SDKs of each wire, whose own retries are off, and with plain HTTP: how many calls end with the whole answer."
_INCIDENTS = "Recorded incidents of providers, replayed in virtual time: the share of calls that survive. [More](reference/incidents.md)."
_WALL_GROUPS = (("own retries as installed", WALL, ("default",)), ("own retries 2 or 10", WALL, ("2", "10")))
_FAULT_GROUPS = (
    ("one fault, own retries as installed", FAULT, ("default",)),
    ("one fault, own retries off", FAULT, ("zero",)),
    ("every second request fails", REPEATED, ("default",)),
)
_TOOK = {
    WALL: ("median seconds after its end", "median requests"),
    FAULT: ("one fault: median seconds", "one fault: median requests"),
    REPEATED: ("every second request: median seconds", "every second request: median requests"),
}


def walls(document: Mapping[str, Any] | None) -> Section:
    """Overloads of 30 to 600 seconds."""
    return _survival("Walls of overload", "make survival PARTS=wall", _WALLS, document, _WALL_GROUPS, "walls")


def faults(document: Mapping[str, Any] | None) -> Section:
    """Faults of single requests."""
    return _survival("Faults survived", "make survival", _FAULTS, document, _FAULT_GROUPS, "faults")


def _survival(
    title: str,
    reproduce: str,
    about: str,
    document: Mapping[str, Any] | None,
    groups: Sequence[tuple[str, str, tuple[str, ...]]],
    name: str,
) -> Section:
    if document is None:
        return Section(title=title, reproduce=reproduce, about=about)
    found = _shares(document, groups)
    took = _took(document, dict.fromkeys(part for _, part, _ in groups))
    when = " to ".join(dict.fromkeys(document["measured"]))
    versions = ", ".join(f"{name} {version}" for name, version in document["gateways"].items())
    drawn = [(found.measures[place].title, bars_of(found, place)) for place in range(0, len(found.measures), 2)]
    return Section(
        title=title,
        reproduce=reproduce,
        about=about,
        comparisons=[found, took],
        other_losses=_lost(document, groups),
        said=f"{groups[0][0]}: "
        + ", ".join(f"{name} {found.measures[0].show(row[0])}" for name, row in found.rows.items()),
        source=f"Measured {when}: {versions}; one run per cell. The clients' versions are on the page of all cells.",
        pictures={f"{name}.svg": picture(f"{title}: share survived", drawn)},
    )


def _counts(rows: Iterable[Row], column: str) -> Counter[str]:
    return sum((row.count(column) for row in rows), Counter())


def _chosen(document: Mapping[str, Any], part: str, tries: Sequence[str]) -> list[Row]:
    return [row for row in rows_of(dict(document)) if row.part == part and row.tries in tries]


def _shares(document: Mapping[str, Any], groups: Sequence[tuple[str, str, tuple[str, ...]]]) -> Comparison:
    measures: list[Measure] = []
    rows: dict[str, list[float | None]] = {column: [] for column in document["columns"]}
    for title, part, tries in groups:
        chosen = _chosen(document, part, tries)
        counts = {column: _counts(chosen, column) for column in rows}
        sizes = ", ".join(f"{_struck(one)}" for one in counts.values())
        measures += [
            Measure(title=f"{title}: survived (of {sizes})", form="{:.1%}"),
            Measure(title=f"{title}: silently wrong", form="{:.0f}", is_lower_better=True),
        ]
        for column, one in counts.items():
            struck = _struck(one)
            rows[column] += [one[DONE] / struck if struck else None, float(one["wrong"]) if struck else None]
    return Comparison(measures=measures, rows=rows, ours=(OURS,), is_tall=True)


def _struck(counts: Counter[str]) -> int:
    return counts.total() - counts[""]


def _took(document: Mapping[str, Any], parts: Iterable[str]) -> Comparison:
    """Return what survival takes, over the cells that all columns survive."""
    measures: list[Measure] = []
    rows: dict[str, list[float | None]] = {column: [] for column in document["columns"]}
    cells = 0
    for part in parts:
        took = document["took"][part]
        cells += took["cells"]
        measures += [Measure(title=title, form="{:.1f}", is_lower_better=True) for title in _TOOK[part]]
        for column in rows:
            rows[column] += took.get(column, [None, None])
    title = f"What survival takes, in the {cells} cells that all columns survive:"
    return Comparison(measures=measures, rows=rows, ours=(OURS,), title=title, is_tall=True)


def _lost(document: Mapping[str, Any], groups: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[str]:
    return [
        f"{row.client} {row.wire} ({row.mode}, tries {row.tries}), {loss.name}: {loss.verdict} behind Rung, "
        f"survived with {' and '.join(loss.survivors)}."
        for _, part, tries in groups
        for row in _chosen(document, part, tries)
        for loss in row.losses()
    ]


def matrix(records: Mapping[str, Record]) -> Section:
    """Faults of the lab with SDKs that do not retry."""
    reproduce, title = "make results NAME=matrix", "Faults of the lab, without retries of the client"
    record = records.get("matrix")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_MATRIX)
    columns = record.figures["columns"]
    measures = [
        Measure(title="whole answers", form="{:.1%}"),
        Measure(title="neither whole nor a well-formed error", form="{:.0f}", is_lower_better=True),
    ]
    rows = {name: [one["whole"] / one["cells"], float(one["silent"])] for name, one in columns.items()}
    found = Comparison(measures=measures, rows=rows)
    return Section(title=title, reproduce=reproduce, about=_MATRIX, records=[record], comparisons=[found])


def incidents(records: Mapping[str, Record]) -> Section:
    """Calls that survive recorded incidents, by route, client and gateway."""
    reproduce, title = "make results NAME=incidents", "Recorded incidents"
    record = records.get("incidents")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_INCIDENTS)
    rows = record.figures["rows"]
    made = []
    for severity in dict.fromkeys(row["severity"] for row in rows):
        here = [row for row in rows if row["severity"] == severity]
        made += [_incident(severity, route, here) for route in dict.fromkeys(row["route"] for row in here)]
    return Section(
        title=title,
        reproduce=reproduce,
        about=_INCIDENTS,
        records=[record],
        comparisons=made,
    )


def _incident(severity: str, route: str, rows: Sequence[Mapping[str, Any]]) -> Comparison:
    clients = list(dict.fromkeys(row["client"] for row in rows))
    measures = []
    for client in clients:
        measures.append(Measure(title=f"{client}: survived", form="{:.1%}"))
        measures.append(Measure(title=f"{client}: requests per call", form="{:.2f}", is_lower_better=True))
    values: dict[str, list[float | None]] = {}
    for gateway in dict.fromkeys(row["gateway"] for row in rows):
        cells = {
            row["client"]: row
            for row in rows
            if row["gateway"] == gateway and (row["route"] == route or gateway == "none")
        }
        if cells:
            values[gateway] = [
                cells[client][key] if client in cells else None for client in clients for key in ("survived", "requests_per_call")
            ]  # fmt: skip
    return Comparison(
        measures=measures, rows=values, ours=("Rung",), is_tall=True, title=f"Severity {severity}, {route}:"
    )
