"""Resumes a stopped process of the crew that holds the lock of its table.

SQLite keeps a lock as long as its process exists. A worker that is stopped in the middle of a commit (SIGSTOP, job control)
blocks everybody who uses the table, and so the conductor, which would evict it, too.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.file_locks import lock_holders
from rung.engine.process_identity import ProcessId, group_members, is_group_alive, is_stopped, lookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.adapters.system.worker_processes import RealProcesses
    from rung.engine.signal_flag import SignalFlag

LOOK_SECONDS: Final = 3.0  # a process that is stopped with the lock in two looks is resumed


def release_locks(table_url: str, processes: RealProcesses, stop: SignalFlag, log: Callable[[str], None]) -> None:
    """Resume stopped processes that hold the table's lock, until `stop` is set. A server needs no such help."""
    if "://" in table_url:
        return
    file, suspects = Path(table_url).expanduser(), dict[ProcessId, str]()
    while not stop.wait(LOOK_SECONDS):
        found = stopped_holders(file, processes)
        for process, name in found.items():
            if process in suspects:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.number, signal.SIGCONT)
                log(f"{name}: process {process.number} was stopped while it held the table's lock; resumed it")
        suspects = found


def stopped_holders(file: Path, processes: RealProcesses) -> dict[ProcessId, str]:
    """Return the crew's stopped processes that hold a lock on its table, with the names of their groups."""
    stopped = {number for number in lock_holders(file) if is_stopped(number)}
    if not stopped:
        return {}
    found = {}
    for name in processes.names():
        leader = processes.pid(name)
        if leader is not None and is_group_alive(leader):
            for number in stopped.intersection(group_members(leader.number)):
                if process := lookup(number):
                    found[process] = name
    return found
