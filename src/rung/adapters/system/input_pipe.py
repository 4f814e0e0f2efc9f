"""Standard input of a command, written while the command runs; tells whether the command has read any of it."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

THREAD_NAME: Final = "rung-input"
_INT: Final = bytes(4)


class InputPipe:
    """Pipe that a thread fills with chunks of bytes. `reader` is the command's standard input."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.reader, self._writer = os.pipe()
        self._chunks = chunks
        self._written = 0
        self._is_all_written = False
        self._is_unread: bool | None = None  # None: open
        self._closing = threading.Lock()
        threading.Thread(target=self._write, name=THREAD_NAME, daemon=True).start()

    def close(self) -> bool:
        """Close the reading end when the command has ended. Return whether it certainly read nothing of what it was given.

        That is not certain of an input that the pipe could not hold.
        """
        with self._closing:
            if self._is_unread is None:
                left = int.from_bytes(fcntl.ioctl(self.reader, termios.FIONREAD, _INT), sys.byteorder)
                self._is_unread = self._is_all_written and left == self._written > 0
                os.close(self.reader)
            return self._is_unread

    def _write(self) -> None:
        try:
            for chunk in self._chunks:
                at = 0
                while at < len(chunk):
                    at += os.write(self._writer, chunk[at:])
                self._written += len(chunk)
            self._is_all_written = True
        except OSError:
            return  # nobody reads it any more
        finally:
            os.close(self._writer)
