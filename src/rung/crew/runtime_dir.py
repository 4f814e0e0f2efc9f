"""Where a crew's files are on this machine: PID files, logs, hand-overs and reports."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.store.crew.table import CrewTable

RUNTIME_DIR_FACT: Final = "runtime_dir/"  # fact of the crew; the host follows: where its files are there


def runtime_dir(table_url: str, table: CrewTable) -> Path:
    """Return the directory for a crew's files: beside its table, or, for a server URL, where this host first ran it.

    All processes of a crew on one host share it, whichever folder they are started in: they find each other's PID files.
    """
    if "://" not in table_url:
        path = Path(table_url).expanduser().resolve()
        return path.with_name(f"{path.name}.d")
    known = Path(table.get_fact(_fact()) or "")
    if known.is_absolute() and known.is_dir() and os.access(known, os.R_OK | os.W_OK | os.X_OK):
        return known
    return Path("rung-crew").resolve()


def record_runtime_dir(table_url: str, table: CrewTable) -> Path:
    """Return the directory for a crew's files, made and recorded for everybody on this host."""
    directory = runtime_dir(table_url, table)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if "://" in table_url and table.get_fact(_fact()) != str(directory):
        table.set_fact(_fact(), str(directory))
    return directory


def _fact() -> str:
    return RUNTIME_DIR_FACT + socket.gethostname()
