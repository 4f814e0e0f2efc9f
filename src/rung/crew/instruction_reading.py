"""Instructions are read before a worker gets them: small flaws are mended in a copy, larger ones are named."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CONDUCTOR, MessageType
from rung.core.crew.instruction_check import InstructionCheck, check_instructions, surroundings_of
from rung.core.crew.instruction_paths import paths_in
from rung.core.domain.errors import ConfigError
from rung.crew.instruction_file import read_instructions
from rung.crew.plan_sync import PLAN_FOLDER_KEY, current_plan
from rung.store.crew.briefing import briefing_of, instruction_of
from rung.store.crew.rows import INSTRUCTION_FACT

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

CHECKED_FACT: Final = (
    "instructions_read/"  # fact of the crew; the task id follows: digest of the text that was found usable
)
ORIGINAL_FACT: Final = (
    "original_instructions/"  # fact of the crew; the task id follows: digest and path of a replaced file
)
MAX_PATHS: Final = 20_000  # near a task; in a larger folder no path is compared
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})


def instruction_problem(crew: ConductorContext, task: TaskRow) -> str:
    """Return what is wrong with the task's instructions; empty if they can be used. Small flaws are mended on the way.

    A text is read once. It is read again when it changes.
    """
    task = _with_changed_original(crew, task)
    try:
        text = read_instructions(task.instruction_path) if task.instruction_path else instruction_of(crew.table, task)
    except ConfigError as error:
        return f"it must be {error.allowed}"
    if not text or crew.table.get_fact(CHECKED_FACT + task.task_id) == _digest(text):
        return ""
    check = check_text(crew, task, text)
    if check.problems:
        return "; ".join(check.problems)
    if check.mended:
        give_instructions(crew, task, check.text, "mended: " + "; ".join(check.mended))
    crew.table.set_fact(CHECKED_FACT + task.task_id, _digest(check.text))
    return ""


def check_text(crew: ConductorContext, task: TaskRow, text: str) -> InstructionCheck:
    """Read a text that is to be the task's instructions."""
    folder = Path(task.workdir) if task.workdir else Path.cwd()
    beside = (folder, Path(crew.table.get_fact(PLAN_FOLDER_KEY) or "."), Path(task.instruction_path or ".").parent)

    def exists(path: str) -> bool:
        return any((place / path).exists() for place in beside)

    is_missing = any(not exists(path) for path in paths_in(text))
    surroundings = surroundings_of(current_plan(crew.table), task.task_id, nearby_paths(folder) if is_missing else ())
    return check_instructions(text, surroundings, exists)


def give_instructions(crew: ConductorContext, task: TaskRow, text: str, why: str) -> None:
    """Give the task another text: in a file of the crew, never in the original file. The next worker is told why."""
    file = crew.write(f"instructions/{task.task_id}.md", text)
    if task.instruction_path:
        if task.instruction_path != str(file):
            crew.table.set_fact(
                ORIGINAL_FACT + task.task_id, f"{_file_digest(task.instruction_path)} {task.instruction_path}"
            )
        crew.table.update_columns(task.task_id, instruction_path=str(file))
    else:
        crew.table.set_fact(INSTRUCTION_FACT + task.task_id, text)
    briefing = briefing_of(crew.table, crew.table.require_task(task.task_id)).body()
    body = f"INSTRUCTION ({why})\n\n{briefing}"
    crew.table.post_message(task.task_id, CONDUCTOR, body, MessageType.INSTRUCTION)
    crew.log(f"{task.task_id}: its instructions were {why} ({file})")


def _with_changed_original(crew: ConductorContext, task: TaskRow) -> TaskRow:
    """Return the task with its original file if that has changed since a copy took its place: its owner has mended it."""
    stored = crew.table.get_fact(ORIGINAL_FACT + task.task_id)
    if not stored or task.instruction_path != str(crew.runtime_dir / "instructions" / f"{task.task_id}.md"):
        return task
    digest, _, original = stored.partition(" ")
    if _file_digest(original) in ("", digest):
        return task
    crew.table.update_columns(task.task_id, instruction_path=original)
    briefing = briefing_of(crew.table, crew.table.require_task(task.task_id)).body()
    crew.table.post_message(task.task_id, CONDUCTOR, briefing, MessageType.INSTRUCTION)
    crew.log(f"{task.task_id}: its instructions are those of {original} again, which has changed")
    return replace(task, instruction_path=original)


def _file_digest(path: str) -> str:
    """Return the digest of an instruction file; empty if it cannot be used."""
    try:
        return _digest(read_instructions(path))
    except ConfigError:
        return ""


def nearby_paths(folder: Path) -> list[str]:
    """Return the files and folders below a folder, relative to it; none if there are too many to compare."""
    paths: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS]
        inside = Path(place).relative_to(folder)
        paths += [(inside / name).as_posix() for name in (*folders, *files)]
        if len(paths) > MAX_PATHS:
            return []
    return paths


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
