"""Read the recorded files into worlds. The data are not a part of this project."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from bench.worlds.world import NONE, ROLES, Cell, Task, Trial, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILES: Final = ("terminal_bench", "tau_airline", "reflexion", "routellm", "aider")
# Systems of one deployment, the one that is asked first, then the others; the last one has the most expensive model.
CHAINS: Final = {
    "droid": ("droid/claude-4-sonnet", "droid/gpt-5", "droid/claude-4.1-opus"),
    "orchestrator": ("orchestrator/qwen-3-coder-480b", "orchestrator/claude-4-sonnet", "orchestrator/claude-4.1-opus"),
    "two agents": ("openhands/claude-4-sonnet", "droid/claude-4-sonnet"),
}
# Arms of Reflexion that are walked; of two arms with the same `told`, the one with all its reflections.
ARMS: Final = ("retry", "last_attempt", "last_attempt+reflexion", "reflexion")
WEAK, STRONG = "mixtral-8x7b", "gpt-4-1106"
Row = dict[str, Any]


class BadRecord(Exception):  # its message is printed to the user
    """A file is missing, or a line of it is not a recorded attempt."""


def read_worlds(folder: Path) -> list[World]:
    """Return the worlds of a folder. Files that it lacks are left out; BadRecord if it has none."""
    rows = {name: list(_rows(folder / f"{name}.jsonl")) for name in FILES if (folder / f"{name}.jsonl").is_file()}
    if not rows:
        raise BadRecord(f"{folder} has none of {', '.join(f'{name}.jsonl' for name in FILES)}")
    worlds = [
        *_terminal_bench(rows.get("terminal_bench", [])),
        *_tau(rows.get("tau_airline", [])),
        *_reflexion(rows.get("reflexion", [])),
        *_routellm(rows.get("routellm", [])),
        *_aider(rows.get("aider", [])),
    ]
    return [world for world in worlds if world.tasks]


def _rows(path: Path) -> Iterator[Row]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
            row["world"], row["task"], row["system"], row["told"]
        except (ValueError, TypeError, KeyError) as error:
            raise BadRecord(f"{path}, line {number}: not a recorded attempt: {error!r}") from None
        yield row


def _trial(row: Row) -> Trial:
    return Trial(row["success"], row.get("seconds"))


def _by_task(rows: Sequence[Row]) -> list[Task]:
    """Return tasks whose trials are repeats of (system, told)."""
    cells: dict[str, dict[Cell, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(rows, key=lambda row: row["trial"]):
        cells[row["task"]][row["system"], row["told"]].append(_trial(row))
    return [
        Task(
            name=name,
            trials={cell: tuple(trials) for cell, trials in found.items()},
            solvable=any(trial.success for trials in found.values() for trial in trials),
        )
        for name, found in sorted(cells.items())
    ]


def _terminal_bench(rows: Sequence[Row]) -> Iterator[World]:
    tasks = tuple(_by_task(rows))
    systems = tuple(sorted({row["system"] for row in rows}))
    for name, chain in CHAINS.items():
        if set(chain) <= set(systems):
            yield World(
                name=f"Terminal-Bench, {name}", about=" > ".join(chain), tasks=tasks, systems=chain,
                shuffled=True, is_ranked=len(chain) == len(ROLES),
            )  # fmt: skip
    if len(systems) >= len(ROLES):
        yield World(
            name="Terminal-Bench, any three", about=f"three of {len(systems)} systems in random order, drawn in each round",
            tasks=tasks, systems=ROLES, shuffled=True, pool=systems,
        )  # fmt: skip


def _tau(rows: Sequence[Row]) -> Iterator[World]:
    for system in sorted({row["system"] for row in rows}):
        tasks = tuple(_by_task([row for row in rows if row["system"] == system]))
        yield World(name="tau-bench airline", about=system, tasks=tasks, systems=(system,), shuffled=True)


def _reflexion(rows: Sequence[Row]) -> Iterator[World]:
    for name in sorted({row["world"] for row in rows}):
        mine = [row for row in rows if row["world"] == name]
        system = mine[0]["system"]
        tasks = [
            _walk(system, [row for row in mine if row["task"] == task]) for task in sorted({r["task"] for r in mine})
        ]
        kept = tuple(task for task in tasks if task is not None)
        yield World(
            name=name,
            about=f"{system}, arms of Reflexion",
            tasks=kept,
            systems=(system,),
            left_out=len(tasks) - len(kept),
        )


def _walk(system: str, rows: Sequence[Row]) -> Task | None:
    """Return a task whose arms share the first try; None if the arms differ in it."""
    arms: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["trial"]):
        if row["arm"] in ARMS:
            arms[row["arm"]].append(row)
    firsts = {arm[0]["success"] for arm in arms.values()}
    if len(firsts) != 1:
        return None
    trials: dict[Cell, tuple[Trial, ...]] = {(system, NONE): (Trial(firsts.pop()),)}
    for arm in arms.values():
        for row in arm[1:]:
            cell = (system, row["told"])
            trials[cell] = (*trials.get(cell, ()), _trial(row))
    return Task(name=rows[0]["task"], trials=trials, solvable=any(row["success"] for row in rows))


def _routellm(rows: Sequence[Row]) -> Iterator[World]:
    for name in sorted({row["world"] for row in rows}):
        tasks = tuple(_by_task([row for row in rows if row["world"] == name]))
        yield World(name=name, about=f"{WEAK} > {STRONG}", tasks=tasks, systems=(WEAK, STRONG), is_ranked=True)


def _aider(rows: Sequence[Row]) -> Iterator[World]:
    for name in sorted({row["world"] for row in rows}):
        runs = [row for row in rows if row["world"] == name]
        tasks = tuple(task for number, run in enumerate(runs) for task in _aggregate(number, run))
        about = f"{len(runs)} runs of {runs[0]['n']} tasks, totals only; each with its own model"
        yield World(name=name.replace("_", " "), about=about, tasks=tasks, systems=("model",))


def _aggregate(number: int, run: Row) -> Iterator[Task]:
    """Yield the tasks of a run by what became of them: solved at once, mended when told the failing tests, neither."""
    first, told = run["pass1"] / 100, run["pass2"] / 100
    shares = ((first, True, ()), (told - first, False, (Trial(True),)), (1 - told, False, (Trial(False),)))
    for index, (share, success, second) in enumerate(shares):
        if share > 0:
            yield Task(
                name=f"{number}.{index}", cluster=str(number), weight=share * run["n"], solvable=None,
                trials={("model", NONE): (Trial(success),), ("model", run["told"]): second},
            )  # fmt: skip
