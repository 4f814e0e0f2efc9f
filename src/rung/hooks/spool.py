"""Spool of events for the journal: hooks append lines to a file, so that the agent does not wait for a database."""

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

MAX_SPOOL_BYTES: Final = 4 * 1024 * 1024  # of one session; further lines are dropped until it is drained
MAX_TEXT_CHARS: Final = 4_000


def record_event(state: SessionState, event: HookEvent, now: float, name: str, **facts: Any) -> None:
    """Record an event of the session's incident. It gets its sequence number here, so that it is stored only once."""
    table = state.table
    if "incident" not in table:
        if name in ("closed", "succeeded"):
            return  # nothing went wrong in this session
        table["incident"] = f"{state.key}-{int(table['began'])}"
        record_event(state, event, now, "opened", prompt=table.get("prompt", ""))
    line = {"n": table.get("n", 0), "at": now, "incident": table["incident"], "name": name, **facts}
    table["n"] = line["n"] + 1
    if name == "opened":
        line |= {"agent": event.agent, "session": event.session}
    state.table.setdefault("lines", []).append(line)


def record_finding(state: SessionState, event: HookEvent, now: float, finding: Finding) -> None:
    """Record a detector's finding as a failure."""
    facts: dict[str, Any] = {"tool": finding.tool, "text": finding.text, "kind": finding.kind.value}
    facts |= {"rule": finding.rule, "repeats": finding.repeats, "missing": list(finding.missing)}
    record_event(state, event, now, "failed", **facts)


def flush(data_dir: str, state: SessionState) -> bool:
    """Append the recorded lines to the spool; true if there were any."""
    lines = state.table.pop("lines", [])
    if not lines:
        return False
    lines[0] |= {
        "cwd": state.table.get("cwd", ""),
        "journal": state.table.get("journal", ""),
        "notes": state.table.get("notes", ""),
    }
    folder = os.path.join(data_dir, "spool")  # noqa: PTH118  # pathlib costs milliseconds
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    handle = os.open(os.path.join(folder, state.key + ".jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # noqa: PTH118
    try:
        if os.fstat(handle).st_size < MAX_SPOOL_BYTES:
            text = "".join(fast_json.dumps(line) + "\n" for line in lines)
            os.write(handle, text.encode("utf-8", "replace"))
    finally:
        os.close(handle)
    return True


def start_drain(data_dir: str) -> None:
    """Start a process that drains the spool into the journal."""
    spawn_detached("rung.hooks.spool_drain", data_dir)


def spawn_detached(module: str, data_dir: str) -> None:
    """Run a module in a detached background process."""
    command = [sys.executable, "-P", "-m", module, data_dir]
    if not hasattr(os, "fork"):
        import subprocess

        subprocess.Popen(command, stdin=-3, stdout=-3, stderr=-3, close_fds=True)  # noqa: S603  # our own command
        return
    if os.fork():
        return
    try:  # in the child: detach from the agent's session and streams
        os.setsid()
        devnull = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(devnull, handle)
        os.nice(5)
        os.execv(command[0], command)  # noqa: S606  # our own command
    finally:
        os._exit(0)
