"""Waits for something to happen, with a deadline that only a broken test reaches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
DEADLINE_SECONDS = 180.0


def wait_until(condition: Callable[[], T | None], pause: float = 0.02) -> T:
    """Poll the condition until it is true, and return its value."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not true after {DEADLINE_SECONDS:g} s: {condition}"
        time.sleep(pause)
    return value


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
