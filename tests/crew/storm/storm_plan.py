"""The plan of a storm: forty tasks whose work can be done only by somebody who was given the whole task text."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.policy.serializer import to_toml

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
WAYS = ("library", "library", "command", "sql")  # how the worker of a task talks to the crew
LINES = 12  # of filler in a task text


@dataclass(frozen=True, slots=True)
class StormTask:
    """A task, its text, and the word that its work must contain."""

    id: str
    text: str
    word: str
    way: str
    checkpoints: int
    needs: tuple[str, ...] = ()
    in_file: bool = False


def make_tasks(seed: int, number: int, folder: Path) -> list[StormTask]:
    """Return the tasks of a seed."""
    rng = random.Random(f"plan/{seed}")
    tasks = []
    for n in range(1, number + 1):
        name, word = f"task-{n:02}", f"word{rng.getrandbits(48):012x}"
        filler = [f"{name} line {line}: {rng.getrandbits(64):016x}" for line in range(LINES)]
        lines = [f"Write the word of {name}.", f"FILE: {folder / 'out' / name}", f"WORD: {word}", *filler]
        lines.append(f"End of the text of {name}.")
        tasks.append(
            StormTask(
                name,
                "\n".join(lines),
                word,
                rng.choice(WAYS),
                rng.choice((0, 0, 0, 1, 2)),
                (f"task-{rng.randint(1, n - 1):02}",) if n > 8 and n % 4 == 0 else (),
                rng.random() < 0.4,
            )
        )
    return tasks


def plan_tasks(tasks: Sequence[StormTask]) -> list[dict[str, Any]]:
    """Return the tasks as tables of a plan, without their commands."""
    rows = []
    for task in tasks:
        text = {"instruction_path": f"texts/{task.id}.md"} if task.in_file else {"instruction": task.text}
        rows.append({"id": task.id, **text, "depends_on": list(task.needs), "checkpoints": task.checkpoints})
    return rows


def write_plan(tasks: Sequence[StormTask], folder: Path, seed: int, **crew: Any) -> Path:
    """Write the plan, its instruction files and the words that its work is checked for."""
    for place in ("out", "words", "texts", "received", "sent", "ended", "asking"):
        (folder / place).mkdir()
    lines = ["[crew]", to_toml(crew)]
    for task, row in zip(tasks, plan_tasks(tasks), strict=True):
        (folder / "words" / task.id).write_text(task.word)
        if task.in_file:
            (folder / "texts" / f"{task.id}.md").write_text(task.text)
        lines += ["[[task]]", to_toml({**row, "command": command_of(task, folder, seed)})]
    plan = folder / "plan.toml"
    plan.write_text("\n".join(lines))
    return plan


def command_of(task: StormTask, folder: Path, seed: int) -> list[str]:
    """Return the command of the task's worker."""
    if task.way == "command":
        check = f"grep -q -f {folder}/words/{task.id} {folder}/out/{task.id}"
        wrapper = [sys.executable, "-m", "rung", "worker", "run", "--poll-interval", "0.1", "--check", check, "--"]
        return [*wrapper, sys.executable, "-S", str(HERE / "stormy_command.py"), str(seed), str(folder)]
    return [sys.executable, str(HERE / "stormy_worker.py"), task.way, str(seed), str(folder), str(task.checkpoints)]
