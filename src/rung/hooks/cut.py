"""What a shell set down when a session broke off: there is no time for an interpreter then."""

from __future__ import annotations

import json
import os


def folder(place: str) -> str:
    """Where it lies."""
    return os.path.join(place, "cut")  # noqa: PTH118  # as everywhere in hooks: pathlib costs milliseconds


def cut_off(place: str, session: str) -> str:
    """Why this session broke off; empty when it did not. What is found is taken away."""
    why = ""
    try:
        entries = list(os.scandir(folder(place)))
    except OSError:
        return ""
    for entry in entries:
        try:
            with open(entry.path, "rb") as file:  # noqa: PTH123
                table = json.loads(file.read())
        except (OSError, ValueError):
            continue  # being written just now, or no JSON: the next one who looks finds it again
        if isinstance(table, dict) and table.get("session_id") == session:
            parts = (table.get("error"), table.get("error_details"), table.get("last_assistant_message"))
            why = "\n".join(str(part) for part in parts if part) or "no reason was given"
            os.unlink(entry.path)  # noqa: PTH108
    return why
