"""Pipe that holds the whole input of a command before the command starts."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import Final

MAX_BYTES: Final = 1_048_576  # what Linux grants a pipe of an ordinary user


def filled_pipe(data: bytes) -> int | None:
    """Return the reading end of a pipe that holds all of `data`; None if it does not fit.

    A command that reads it gets its whole input, also if the process that started it is killed at that moment. From a pipe
    that is written later, it would read a part, or nothing, and take that for its task.
    """
    if len(data) > MAX_BYTES:
        return None
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, max(len(data), 4_096))
        with suppress(BlockingIOError):
            if not data or os.write(writer, data) == len(data):
                return reader
    finally:
        os.close(writer)
    os.close(reader)
    return None
