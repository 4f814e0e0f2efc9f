"""The crash log: what went wrong in our hooks, shown to the user when the next session begins."""

from __future__ import annotations

import json
import os

from rung.hooks.entry import LOG


def unseen(place: str) -> str:
    """What has been added since it was last shown, in one line; empty when nothing was."""
    path, mark = os.path.join(place, LOG), os.path.join(place, LOG + ".seen")  # noqa: PTH118
    try:
        size = os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return ""
    seen = _number(mark)
    with open(path, "rb") as file:  # noqa: PTH123
        file.seek(seen if seen <= size else 0)
        lines = [line for line in file.read().splitlines() if line.strip()]
    with open(mark, "w", encoding="ascii") as file_:  # noqa: PTH123
        file_.write(str(size))
    if not lines:
        return ""
    try:
        last = json.loads(lines[-1])
        words = f"{last['error']} ({last['where']})"
    except (ValueError, KeyError, TypeError):
        words = lines[-1].decode("utf-8", "replace")[:200]
    times = "once" if len(lines) == 1 else f"{len(lines)} times"
    return f"rung: its hook failed {times} since the last session and let the agent go on. Last: {words}. Log: {path}"


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return int(file.read())
    except (OSError, ValueError):
        return 0
