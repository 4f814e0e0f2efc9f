"""Made-up worlds, for a run without data: one with three systems, one with a single system that can be told."""

from __future__ import annotations

from bench.worlds.world import NONE, Task, Trial, World


def synthetic_worlds() -> list[World]:
    """Return the made-up worlds."""
    return [_three_systems(), _told()]


def _three_systems() -> World:
    systems = ("small", "medium", "large")
    solvers: tuple[set[str], ...] = (
        {"small", "medium", "large"},
        {"medium", "large"},
        {"large"},
        set(),
        {"small"},
        {"medium"},
    )
    tasks = []
    for index, solving in enumerate(solvers):
        trials = {
            (system, NONE): tuple(Trial(system in solving and number != index % 3, 10.0) for number in range(5))
            for system in systems
        }
        tasks.append(Task(name=f"made up {index}", trials=trials, solvable=bool(solving)))
    return World(
        name="made up, three systems", about=" > ".join(systems), tasks=tuple(tasks), systems=systems,
        shuffled=True, is_ranked=True,
    )  # fmt: skip


def _told() -> World:
    """Return a world in which plain repeats never help, and telling helps every second task."""
    tasks = []
    for index in range(6):
        plain = (Trial(index == 0), *[Trial(False)] * 4)
        told = tuple(Trial(index % 2 == 0) for _ in range(4))
        tasks.append(
            Task(
                name=f"made up {index}",
                trials={("agent", NONE): plain, ("agent", "reflection"): told},
                solvable=index % 2 == 0,
            )
        )
    return World(name="made up, told", about="agent", tasks=tuple(tasks), systems=("agent",))
