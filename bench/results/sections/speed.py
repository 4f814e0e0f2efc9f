"""Sections about speed and load: overhead of a call, concurrent calls, and the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.results.bars import bars_of, picture
from bench.results.section import Comparison, Measure, Section, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.results.record import Record

NEW_FAILURE = "rung, a failure never seen before"
FIRST_USE = "rung, import and first use"  # its import alone loads nearly nothing
_OVERHEAD = "Processor time of a guarded call as a ratio to a bare try/except loop around the same function. The other libraries have the leanest settings that still retry; Rung always has its ladder, breaker, deadline and record."
_CONCURRENCY = "Concurrent calls to a service that fails a share of them, each with at most four attempts and the same backoff. The same attempts fail for every library. By default, Rung waits for the service when the attempts are used up; with `patience=0` it gives up as the others do."
_GATEWAY = "Requests per processor second and latency of gateways in turns on one machine. All of them pass the same requests to the same provider on loopback."


def overhead(records: Mapping[str, Record]) -> Section:
    """Overhead of a guarded call, beside other retry libraries."""
    reproduce, title = "make results NAME=overhead", "Overhead of a guarded call"
    record = records.get("overhead")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_OVERHEAD)
    found = _overhead(record.figures)
    groups = [(found.measures[place].title, bars_of(found, place)) for place in range(4)]
    return Section(
        title=title,
        reproduce=reproduce,
        about=_OVERHEAD,
        records=[record],
        comparisons=[found],
        notes=[_goals(record.figures)],
        pictures={"overhead.svg": picture("Processor time as a multiple of a bare loop", groups, is_logarithmic=True)},
    )


def _overhead(figures: Any) -> Comparison:
    ratios, imports, memory = figures["ratios"], figures["imports"], figures["bytes"]
    calls = [(mode, scenario) for mode in ("sync", "async") for scenario in ("success", "one-failure")]
    measures = [
        *(
            Measure(title=f"{mode}, {scenario.replace('-', ' ')}", form="{:.1f}x", is_lower_better=True)
            for mode, scenario in calls
        ),
        Measure(title="import, of an empty interpreter's", form="{:.2f}x", is_lower_better=True),
        Measure(title="bytes of a guarded function", form="{:,.0f}", is_lower_better=True),
        Measure(title="bytes while a call runs", form="{:,.0f}", is_lower_better=True),
    ]
    names = dict.fromkeys(key.split("/")[2] for key in ratios)
    rows: dict[str, list[float | None]] = {
        name: [
            *(ratios.get(f"{mode}/{scenario}/{name}") for mode, scenario in calls),
            imports.get(name),
            *(memory.get(f"sync/{name}", {}).get(key) for key in ("function", "peak")),
        ]
        for name in names
    }
    rows[NEW_FAILURE] = [
        ratios.get(f"{mode}/fresh-failure/rung") if scenario != "success" else None for mode, scenario in calls
    ]
    rows[NEW_FAILURE] += [None] * 3
    rows[FIRST_USE] = [*[None] * len(calls), imports.get("rung + first use"), None, None]
    return Comparison(
        measures=measures, rows=rows, ours=("rung", NEW_FAILURE, FIRST_USE), yardsticks=("bare loop", "bare decorator")
    )


def _goals(figures: Any) -> str:
    """Return the goals of the project's own, with what was measured."""
    told = [
        f"{goal['name']} {goal['measured']:.3g}{goal['unit']} (at most {goal['limit']:.3g}{goal['unit']}: {'met' if goal['met'] else 'MISSED'})"
        for goal in figures["goals"]
    ]
    return f"Goals: {'; '.join(told)}." if told else ""


def concurrency(records: Mapping[str, Record]) -> Section:
    """Lost calls and load of the provider, beside other retry libraries."""
    reproduce, title = "make results NAME=concurrency", "Concurrent calls: losses and load"
    record = records.get("concurrency")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_CONCURRENCY)
    rows, calls = record.figures["rows"], record.figures["calls"]
    measures = []
    for row in rows:
        measures.append(Measure(title=f"{row['share']:.0%} fail: lost of {calls}", form="{:.0f}", is_lower_better=True))
        measures.append(
            Measure(title=f"{row['share']:.0%} fail: requests per call", form="{:.2f}", is_lower_better=True)
        )
        measures.append(
            Measure(title=f"{row['share']:.0%} fail: seconds until all had ended", form="{:.1f}", is_lower_better=True)
        )
    values = {name: [row[key][name] for row in rows for key in ("lost", "load", "seconds")] for name in rows[0]["lost"]}
    ours = tuple(name for name in values if name.startswith("rung"))
    found = Comparison(measures=measures, rows=values, is_tall=True, ours=ours)
    return Section(
        title=title,
        reproduce=reproduce,
        about=_CONCURRENCY,
        records=[record],
        comparisons=[found],
        said=found.headline(len(measures) - 3),
    )


def gateway(records: Mapping[str, Record]) -> Section:
    """Speed of gateways, in each case."""
    reproduce, title = "make results NAME=gateway", "Speed of the gateway"
    record = records.get("gateway")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_GATEWAY)
    cells = record.figures["cells"]
    speeds = [_gateway(cells, "per_cpu_second"), _gateway(cells, "p50")]
    wrong = {name: sum(cell[name]["wrong"] for cell in cells.values() if name in cell) for name in _subjects(cells)}
    memory = [(f"{int(mark):,}", f"{size:.0f} MB") for mark, size in record.figures["memory"].items()]
    return Section(
        title=title,
        reproduce=reproduce,
        about=_GATEWAY,
        records=[record],
        comparisons=speeds,
        notes=[
            "Wrong answers: " + ", ".join(f"{name} {count}" for name, count in wrong.items()) + ".",
            table(["requests", "memory of Rung"], memory) if memory else "",
        ],
        said=f"Requests per processor second, as a multiple of Rung's, {speeds[0].headline(len(cells) // 2)}",
    )


def _subjects(cells: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for cell in cells.values() for name in cell))


def _gateway(cells: Mapping[str, Any], key: str) -> Comparison:
    """Return one measure of all cells: requests per CPU second as ratios to ours, or latency as ratios to direct ones."""
    is_speed = key == "per_cpu_second"
    measures = [Measure(title=name, form="{:.2f}x", is_lower_better=not is_speed) for name in cells]
    rows: dict[str, list[float | None]] = {}
    for name in _subjects(cells):
        if name != "direct":
            base = [cell["rung"][key] if is_speed else 1.0 for cell in cells.values()]
            rows[name] = [
                cell[name][key] / own if name in cell and own else None
                for cell, own in zip(cells.values(), base, strict=True)
            ]
    title = (
        "Requests per processor second, as a multiple of Rung's:"
        if is_speed
        else "Median latency, as a multiple of a direct request's:"
    )
    return Comparison(measures=measures, rows=rows, yardsticks=("minimal",), title=title, is_tall=True)
