"""Record of the demo that listens on a port, so that a second one can say where the first is."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rung.wiring.journals import default_path
from rung.wiring.secret_file import read_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _file(port: int) -> Path:
    return default_path().with_name(f"demo-{port}.url")


def running_address(port: int) -> str:
    """Return the address of the demo that listens on this port; empty if none of this account does."""
    pid, _, address = read_secret(str(_file(port))).partition(" ")
    if not pid.isdigit():
        return ""
    try:
        os.kill(int(pid), 0)
    except OSError:  # it was killed, and left its record
        return ""
    return address


@contextmanager
def recorded(port: int, address: str) -> Iterator[None]:
    """Record the address, readable by this account alone, while the block runs. It contains a token."""
    file = _file(port)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as record:
        record.write(f"{os.getpid()} {address}")
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()
