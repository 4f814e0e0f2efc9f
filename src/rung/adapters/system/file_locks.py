"""The processes that hold a lock on a file, as Linux lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_LOCKS: Final = Path("/proc/locks")  # lines like: 1: POSIX  ADVISORY  WRITE 4711 08:01:131144 0 EOF


def lock_holders(file: Path) -> set[int]:
    """Return the PIDs of the processes with a lock on a file; empty on systems that do not list them.

    The file is not opened: closing it again would release every lock that this process has on it.
    """
    try:
        inode = file.stat().st_ino
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return set()
    # An arrow marks a process that waits. A layered file system reports another device here than `stat` does: the number
    # of the file alone has to do.
    held = [line.split() for line in lines if "->" not in line and f":{inode} " in line]
    return {int(lock[4]) for lock in held}
