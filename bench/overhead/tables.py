"""Results of the overhead benchmark: figures, goals, and tables."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from statistics import median

from bench.overhead.subjects import LABELS, PEERS, SETUPS, YARDSTICK
from bench.overhead.work import Mode, Scenario


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit and the measured value."""

    name: str
    limit: float
    measured: float
    unit: str

    @property
    def met(self) -> bool:
        """Return whether the value is within the limit."""
        return self.measured <= self.limit


@dataclass(slots=True)
class Results:
    """All measurements; calls are nanoseconds per round, by mode, scenario and name."""

    calls: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    imports: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)

    def ratios(self, mode: Mode, scenario: Scenario, name: str) -> list[float]:
        """Return the ratio to the bare loop in each round."""
        return [found["ns"] / found["bare"] for found in self.calls[cell(mode, scenario, name)]]

    def between(self, mode: Mode, scenario: Scenario, one: str, other: str) -> float:
        """Return the median ratio between two subjects."""
        pairs = zip(self.ratios(mode, scenario, one), self.ratios(mode, scenario, other), strict=True)
        return median(mine / theirs for mine, theirs in pairs)

    def import_times(self, name: str) -> list[float]:
        """Return the milliseconds of an import: best and median wall time, best CPU time."""
        wall, cpu = zip(*self.imports[name], strict=True)
        return [min(wall), median(wall), min(cpu)]

    def over_empty(self, name: str) -> list[float]:
        """Return the milliseconds of an import minus those of an empty interpreter."""
        pairs = zip(self.import_times(name), self.import_times(""), strict=True)
        return [own - empty for own, empty in pairs]


def cell(mode: str, scenario: str, name: str) -> str:
    """Return the key of one figure."""
    return f"{mode}/{scenario}/{name}"


def goals(results: Results) -> list[Goal]:
    """Return the goals with the measured values."""
    found = []
    for mode in Mode:
        for scenario, bare, peer in ((Scenario.SUCCESS, 2.5, 1 / 20), (Scenario.ONE_FAILURE, 15.0, 1 / 3)):
            what = f"{mode}, {scenario.replace('-', ' ')}"
            found += [
                Goal(f"{what}: of the bare loop", bare, median(results.ratios(mode, scenario, "rung")), "x"),
                Goal(f"{what}: of tenacity", peer, results.between(mode, scenario, "rung", "tenacity"), "x"),
            ]
    for name, limit in (("rung", 15.0), ("rung + first use", 40.0)):
        *_, cpu = results.over_empty(name)
        found.append(Goal(f"import {name}, over an empty one", limit, cpu, " ms"))
    return found


def print_text(results: Results, method: str) -> None:
    """Print the tables."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("rung", *PEERS))
    print(f"{method}\nPython {sys.version.split()[0]}, {versions}\n")
    for mode in Mode:
        _print_calls(results, mode)
    _print_imports(results)
    _print_memory(results)
    _print_goals(goals(results))


def _print_goals(found: list[Goal]) -> None:
    print(f"{'goal':<40}{'limit':<12}{'measured':>12}   met")
    for goal in found:
        digits = 1 if goal.limit >= 1 else 3
        limit, measured = (f"{number:.{digits}f}{goal.unit}" for number in (goal.limit, goal.measured))
        print(f"{goal.name:<40}<= {limit:<9}{measured:>12}   {'yes' if goal.met else 'NO'}")


def _print_calls(results: Results, mode: Mode) -> None:
    print(f"{mode + ' call':<44}{'success':^30}{'one failure, then success':^30}")
    print(f"{'':<44}" + f"{'x bare':>10}{'ns':>10}{'spread':>10}" * 2)
    for name in SETUPS:
        cells = [_columns(results, mode, scenario, name) for scenario in (Scenario.SUCCESS, Scenario.ONE_FAILURE)]
        print(f"{LABELS.get(name, name):<44}" + "".join(cells))
    for name in (YARDSTICK, "rung"):
        print(f"{name + ', a failure never seen before':<44}{'':30}" + _columns(results, mode, Scenario.FRESH, name))
    print()


def _columns(results: Results, mode: Mode, scenario: Scenario, name: str) -> str:
    ratios = results.ratios(mode, scenario, name)
    middle = median(ratios)
    nanoseconds = median(found["ns"] for found in results.calls[cell(mode, scenario, name)])
    return f"{middle:>10.2f}{nanoseconds:>10,.0f}{(max(ratios) - min(ratios)) / middle:>10.0%}"


def _print_imports(results: Results) -> None:
    print(f"{'import, ms over an empty interpreter':<44}{'best':>10}{'median':>10}{'best CPU':>10}")
    rows = {"(empty interpreter itself)": results.import_times("")}
    rows |= {name: results.over_empty(name) for name in results.imports if name}
    for name, times in rows.items():
        print(f"{name:<44}" + "".join(f"{time:>10.1f}" for time in times))
    print()


def _print_memory(results: Results) -> None:
    columns = [(mode, key) for mode in Mode for key in ("policy", "function", "peak")]
    print(f"{'bytes':<16}" + "".join(f"{f'{mode} {key}':>15}" for mode, key in columns))
    for name in SETUPS:
        cells = (f"{results.memory[f'{mode}/{name}'][key]:>15,.0f}" for mode, key in columns)
        print(f"{name:<16}" + "".join(cells))
    print("(policy: made from settings; function: one guarded by it; peak: while one good call runs)\n")


def print_json(results: Results) -> None:
    """Print all figures as JSON."""
    ratios = {
        key: median(results.ratios(Mode(mode), Scenario(scenario), name))
        for key in results.calls
        for mode, scenario, name in [key.split("/")]
    }
    judged = [asdict(goal) | {"met": goal.met} for goal in goals(results)]
    print(json.dumps(asdict(results) | {"ratios": ratios, "goals": judged}, indent=2))
