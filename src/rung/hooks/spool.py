"""What happened, set down in a moment for the journal: the agent does not wait for a database."""

from __future__ import annotations

import os
import sys

from rung.hooks import fast_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from rung.detectors.finding import Finding
    from rung.hooks.agent_formats import HookEvent
    from rung.hooks.session_state import SessionState

LIMIT: Final = 4 * 1024 * 1024  # of one session's lines that nobody has taken to the journal yet
TEXT: Final = 4_000


def note(memory: SessionState, heard: HookEvent, now: float, name: str, **facts: Any) -> None:
    """Note an event of the session's incident; its place there is given now, so that it can only be kept once."""
    table = memory.table
    if "incident" not in table:
        if name in ("closed", "succeeded"):
            return  # nothing went wrong in this session
        table["incident"] = f"{memory.key}-{int(table['began'])}"
        note(memory, heard, now, "opened", prompt=table.get("prompt", ""))
    line = {"n": table.get("n", 0), "at": now, "incident": table["incident"], "name": name, **facts}
    table["n"] = line["n"] + 1
    if name == "opened":
        line |= {"agent": heard.agent, "session": heard.session}
    memory.table.setdefault("lines", []).append(line)


def note_finding(memory: SessionState, heard: HookEvent, now: float, finding: Finding) -> None:
    """Note a detector's finding as a failure."""
    facts: dict[str, Any] = {"tool": finding.tool, "text": finding.text, "kind": finding.kind.value}
    facts |= {"rule": finding.rule, "repeats": finding.repeats, "missing": list(finding.missing)}
    note(memory, heard, now, "failed", **facts)


def write(place: str, memory: SessionState) -> bool:
    """Set the noted lines down; true when there were any."""
    lines = memory.table.pop("lines", [])
    if not lines:
        return False
    lines[0] |= {
        "cwd": memory.table.get("cwd", ""),
        "journal": memory.table.get("journal", ""),
    }  # whose lines these are
    folder = os.path.join(place, "spool")  # noqa: PTH118  # pathlib costs milliseconds
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    handle = os.open(os.path.join(folder, memory.key + ".jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # noqa: PTH118
    try:
        if os.fstat(handle).st_size < LIMIT:
            text = "".join(fast_json.dumps(line) + "\n" for line in lines)
            os.write(handle, text.encode("utf-8", "replace"))
    finally:
        os.close(handle)
    return True


def wake_drain(place: str) -> None:
    """Have the lines taken to the journal."""
    apart("rung.hooks.spool_drain", place)


def apart(module: str, place: str) -> None:
    """Run a module of ours in a process of its own, which nobody waits for."""
    command = [sys.executable, "-m", module, place]
    if not hasattr(os, "fork"):
        import subprocess

        subprocess.Popen(command, stdin=-3, stdout=-3, stderr=-3, close_fds=True)  # noqa: S603  # our own
        return
    if os.fork():
        return
    try:  # in the child: nothing of the agent's stays open
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(nothing, handle)
        os.nice(5)
        os.execv(command[0], command)  # noqa: S606  # our own
    finally:
        os._exit(0)
