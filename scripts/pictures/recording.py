"""Run a command in a pseudo-terminal and record the time of each line that it prints."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS: Final = 100
ROWS: Final = 20
TIMEOUT_SECONDS: Final = 120


class Line(NamedTuple):
    """A printed line with its ANSI styles, and the seconds from the start until it was printed."""

    seconds: float
    ansi: str


def record(command: Sequence[str]) -> list[Line]:
    """Return the lines that the command prints on a terminal; RuntimeError if it fails."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "PYTHONUTF8": "1"}
    process = subprocess.Popen(  # noqa: S603  # own command
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        lines = _read(master)
    finally:
        os.close(master)
        code = process.wait(timeout=TIMEOUT_SECONDS)
    if code != 0:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {code}")
    return lines


def _read(terminal: int) -> list[Line]:
    lines: list[Line] = []
    began, rest = time.monotonic(), b""
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # Linux reports the end of the other side as an error
            data = b""
        if not data:
            return lines
        *whole, rest = (rest + data).split(b"\n")
        now = time.monotonic() - began
        lines += [Line(now, line.decode().rstrip("\r")) for line in whole]
