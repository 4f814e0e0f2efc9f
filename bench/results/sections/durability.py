"""Sections about durability: power cuts, the speed of durable appends, and durable engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.results.bars import bars_of, picture
from bench.results.section import Comparison, Measure, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.results.record import Record

_CUTS = "Acknowledged events that are gone after a power cut, on a simulated disk that keeps what was synced and any part of the rest. The same journal runs beside ours with fewer syncs."
_JOURNAL = "Durable events per second as a ratio to raw SQLite, which repeats the same writes, prepared in advance, in the same transactions. A naive store commits each event."
_FLEET = "Durable steps per second of Rung's engines as a ratio to the bare engine on the same server, and the time until another worker takes over from a killed one."


def power_cuts(records: Mapping[str, Record]) -> Section:
    """Events lost in power cuts."""
    title, reproduce = "Durability: power cuts", "make results NAME=power-cuts"
    record = records.get("power-cuts")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_CUTS)
    measures = [
        Measure(title="power cuts", form="{:.0f}"),
        Measure(title="acknowledged events lost", form="{:.2%}", is_lower_better=True),
        Measure(title="journals with losses", form="{:.0f}", is_lower_better=True),
        Measure(title="damaged journals", form="{:.0f}", is_lower_better=True),
    ]
    rows = {
        name: [
            float(one["cuts"]),
            one["lost"] / one["acknowledged"] if one["acknowledged"] else None,
            float(one["journals_with_losses"]),
            float(one["damaged"]),
        ]
        for name, one in record.figures.items()
    }
    found = Comparison(measures=measures, rows=rows)
    return Section(
        title=title,
        reproduce=reproduce,
        about=_CUTS,
        records=[record],
        comparisons=[found],
        notes=["`make storm-journal` also kills processes, fails disks and races owners, on SQLite and PostgreSQL."],
        said=found.headline(1),
    )


def journal(records: Mapping[str, Record]) -> Section:
    """Speed of durable appends beside SQLite itself."""
    title, reproduce = "Durability: speed of the journal", "make results NAME=journal"
    record = records.get("journal")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_JOURNAL)
    shares = record.figures["shares"]
    measures = [Measure(title=way, form="{:.2f}x") for way in shares]
    names = dict.fromkeys(name for one in shares.values() for name in one)
    rows = {"rung" if name == "ours" else name: [shares[way].get(name) for way in shares] for name in names}
    found = Comparison(measures=measures, rows=rows)
    drawn = [(measure.title, bars_of(found, place)) for place, measure in enumerate(measures)]
    goals = [
        f"{goal['name']}: {goal['measured']:.1f}{goal['unit']} ({'at least' if goal['is_minimum'] else 'at most'} "
        f"{goal['limit']:.0f}{goal['unit']}: {'met' if goal['met'] else 'MISSED'})"
        for goal in record.figures["goals"]
    ]
    return Section(
        title=title,
        reproduce=reproduce,
        about=_JOURNAL,
        records=[record],
        comparisons=[found],
        notes=["Goals: " + "; ".join(goals) + "."],
        pictures={
            "journal.svg": picture("Durable events per second, as a multiple of raw SQLite with the same writes", drawn)
        },
    )


def fleet(records: Mapping[str, Record]) -> Section:
    """Durable engines beside the bare ones."""
    title, reproduce = "Durability: engines of a fleet", "make results NAME=fleet"
    record = records.get("fleet")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_FLEET)
    rows = record.figures["rows"]
    rates = {(row["engine"], row["workers"]): row["rate"] for row in rows}
    workers = sorted({row["workers"] for row in rows})
    made = []
    for engine in ("dbos", "temporal"):
        bare, mine = f"bare {engine}", f"rung {engine}"
        values = {name: [_ratio(rates, name, bare, many) for many in workers] for name in (mine, bare)}
        measures = [Measure(title=f"{engine}, {many} workers", form="{:.2f}x") for many in workers]
        made.append(Comparison(measures=measures, rows=values, ours=(mine,)))
    leases = [f"{row['engine']} {row['leases']:.2f}" for row in rows if "leases" in row]
    return Section(
        title=title,
        reproduce=reproduce,
        about=_FLEET,
        records=[record],
        comparisons=made,
        notes=[f"Takeover, in leases: {', '.join(leases)}."] if leases else [],
    )


def _ratio(rates: Mapping[tuple[str, int], float], name: str, bare: str, workers: int) -> float | None:
    own, other = rates.get((name, workers)), rates.get((bare, workers))
    return own / other if own and other else None
