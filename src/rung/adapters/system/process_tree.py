"""Terminates a process that shares the group of this process, with its descendants: no signal to a group is for it alone."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rung.adapters.system.child_processes import exit_code, wait_for_exit
from rung.engine.process_identity import ProcessId, is_alive, live_processes, lookup

if TYPE_CHECKING:
    import subprocess

_POLL_SECONDS: Final = 0.02


def terminate_tree(process: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM to a child process and its descendants, and SIGKILL to those that are left after `grace` seconds."""
    tree = descendants(process.pid)  # before the end of their parents, which makes them orphans
    try:
        _send(process, tree, signal.SIGTERM)
        _wait_for_end(process, tree, grace)
    finally:
        tree |= {new for one in filter(is_alive, tree) for new in descendants(one.number)}  # begun in the meantime
        _send(process, tree, signal.SIGKILL)
        wait_for_exit(process)
        _wait_for_end(process, tree, grace)  # a process that waits for a device cannot be killed


def descendants(number: int) -> set[ProcessId]:
    """Return the live descendants of a process; none on systems without /proc."""
    parents = {pid: place.parent for pid, place in live_processes().items()}
    found, generation = set[int](), {number}
    while generation := {pid for pid, parent in parents.items() if parent in generation} - found:
        found |= generation
    return {process for pid in found if (process := lookup(pid)) is not None}


def _wait_for_end(process: subprocess.Popen[bytes], tree: set[ProcessId], seconds: float) -> None:
    until = time.monotonic() + seconds
    while (exit_code(process) is None or any(map(is_alive, tree))) and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)


def _send(process: subprocess.Popen[bytes], tree: set[ProcessId], sent: signal.Signals) -> None:
    process.send_signal(sent)
    for one in filter(is_alive, tree):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(one.number, sent)
