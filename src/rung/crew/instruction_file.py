"""The instruction file of a task: a regular file of bounded size; a device or a pipe would never end."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from rung.core.crew.learning import learnings_section
from rung.core.domain.errors import ConfigError
from rung.store.crew.briefing import worker_instructions
from rung.store.crew.learnings import load_learnings

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

MAX_BYTES: Final = 1_000_000


def read_instructions(path: str) -> str:
    """Return the text of an instruction file; raises ConfigError if it is not a regular file with text."""
    allowed = f"a regular file with text, up to {MAX_BYTES:,} bytes of UTF-8"
    try:
        data = _read_regular(path)
    except (OSError, ValueError):
        raise ConfigError("instruction_path", path, allowed) from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or len(data) > MAX_BYTES:
        raise ConfigError("instruction_path", path, allowed)
    return text


def full_instructions(table: CrewTable, task: TaskRow) -> str:
    """Return everything that the task's worker is told, with the text of its file and the crew's learnings."""
    file = read_instructions(task.instruction_path) if task.instruction_path else ""
    parts = (worker_instructions(table, task), file, learnings_section(load_learnings(table)))
    return "\n\n".join(part for part in parts if part)


def _read_regular(path: str) -> bytes:
    """Return the start of a regular file; of anything else, nothing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer would block
    try:
        return os.read(descriptor, MAX_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)
