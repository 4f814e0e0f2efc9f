"""Output of a command: shown as it arrives, kept byte for byte on disk, and in memory as a text of bounded size."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_SECONDS: Final = 2.0  # for a grandchild that holds the pipe open
MAX_MEMORY_BYTES: Final = 1 << 20  # of the bytes that are kept; the rest is in a temporary file
MAX_TEXT_BYTES: Final = 8 << 20  # of the text: its start and its end


class OutputText(str):
    """The output of a command as a text, and its bytes as they were."""

    __slots__ = ("_bytes",)
    _bytes: IO[bytes]

    @classmethod
    def of(cls, text: str, output: IO[bytes]) -> OutputText:
        """Return the text with the file that holds the bytes."""
        made = cls(text)
        made._bytes = output
        return made

    def copy_to(self, file: IO[bytes]) -> None:
        """Write the bytes to a file."""
        self._bytes.seek(0)
        shutil.copyfileobj(self._bytes, file)


class KeptBytes(tempfile.SpooledTemporaryFile[bytes]):
    """Bytes that nobody closes: they are needed as long as the text or the command is."""

    def __del__(self) -> None:
        self.close()


class OutputReader:
    """Background reader of a pipe. Its text is the last `tail` bytes, or the start and the end of all of them."""

    def __init__(
        self, pipe: IO[bytes] | None, show: Callable[[bytes], object] | None, tail: int = 0, *, keep: bool = False
    ) -> None:
        assert pipe is not None  # noqa: S101  # opened as a pipe
        self._pipe = pipe
        self._show = show
        self._head_size, self._tail_size = (0, tail) if tail else (MAX_TEXT_BYTES // 2, MAX_TEXT_BYTES // 2)
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0
        self.kept: Any = KeptBytes(MAX_MEMORY_BYTES) if keep else None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), 65_536):
                self._size += len(chunk)
                room = self._head_size - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[room:] if room > 0 else chunk
                if len(self._tail) > 2 * self._tail_size:
                    del self._tail[: -self._tail_size]
                if self.kept is not None:
                    self.kept.write(chunk)
                if self._show is not None:
                    self._show(chunk)

    def text(self) -> str:
        """Return what was read. Does not wait for a grandchild that holds the pipe open."""
        self._thread.join(WAIT_SECONDS)
        tail = bytes(self._tail[-self._tail_size :])
        omitted = self._size - len(self._head) - len(tail)
        mark = f"\n[… {omitted:,} bytes omitted …]\n".encode() if omitted and self._head_size else b""
        return (bytes(self._head) + mark + tail).decode("utf-8", "replace")
