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
MAX_LINE_BYTES: Final = 1 << 16  # of a line that is shown again
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


class OutputClosed(KeyboardInterrupt):
    """Nobody reads the output any more, as after `| head`: the run is stopped, as Ctrl-C stops it."""

    exit_code = 141  # as a shell reports SIGPIPE


class KeptBytes(tempfile.SpooledTemporaryFile[bytes]):
    """Bytes that nobody closes: they are needed as long as the text or the command is."""

    def __del__(self) -> None:
        self.close()


class ShownOutput:
    """Output of several attempts that is shown as it arrives: what an earlier attempt has shown is not shown again.

    Where a later attempt writes something else, its output is shown from the start of that line.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._shown_output = KeptBytes(MAX_MEMORY_BYTES)  # the output of the last attempt, as far as it was shown
        self._attempt = 0
        self.is_at_line_start = True

    def next_attempt(self) -> Callable[[bytes], object]:
        """Return a function that shows the output of the next attempt. Late output of earlier attempts is dropped."""
        self._attempt += 1
        number, at = self._attempt, 0

        def show(chunk: bytes) -> None:
            nonlocal at
            if number == self._attempt:
                at += self._show(at, chunk)

        return show

    def _show(self, at: int, chunk: bytes) -> int:
        """Show what is new in the chunk at this position of the attempt's output. Return its length."""
        self._shown_output.seek(at)
        known = self._shown_output.read(len(chunk))
        same = _common_length(known, chunk)
        if same == len(chunk):
            return same
        if same < len(known):  # another text than before
            self._shown_output.truncate(at + same)
            line = self._line_before(at + same)
            self._put((b"" if self.is_at_line_start else b"\n") + line)
        self._shown_output.seek(at + same)
        self._shown_output.write(chunk[same:])
        self._put(chunk[same:])
        return len(chunk)

    def _line_before(self, at: int) -> bytes:
        start = max(0, at - MAX_LINE_BYTES)
        self._shown_output.seek(start)
        return self._shown_output.read(at - start).rpartition(b"\n")[2]

    def _put(self, chunk: bytes) -> None:
        if chunk:
            self._write(chunk)
            self.is_at_line_start = chunk.endswith(b"\n")


def _common_length(one: bytes, other: bytes) -> int:
    """Return the number of bytes at the start in which both are equal."""
    if other.startswith(one):
        return len(one)
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class OutputReader:
    """Background reader of a pipe. Its text is the last `tail` bytes, or the start and the end of all of them."""

    def __init__(
        self,
        pipe: IO[bytes] | None,
        show: Callable[[bytes], object] | None,
        tail: int = 0,
        *,
        keep: bool = False,
        on_closed: Callable[[], object] | None = None,
        on_output: Callable[[], object] | None = None,
    ) -> None:
        assert pipe is not None  # noqa: S101  # opened as a pipe
        self._pipe = pipe
        self._show = show
        self._on_closed = on_closed
        self._on_output = on_output
        self.is_closed = False  # the output cannot be shown any more
        self._head_size, self._tail_size = (0, tail) if tail else (MAX_TEXT_BYTES // 2, MAX_TEXT_BYTES // 2)
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0
        self.captured: Any = KeptBytes(MAX_MEMORY_BYTES) if keep else None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), 65_536):
                self._size += len(chunk)
                if self._on_output is not None:
                    self._on_output()
                room = self._head_size - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[room:] if room > 0 else chunk
                if len(self._tail) > 2 * self._tail_size:
                    del self._tail[: -self._tail_size]
                if self.captured is not None:
                    self.captured.write(chunk)
                if self._show is not None:
                    self._try_to_show(self._show, chunk)

    def _try_to_show(self, show: Callable[[bytes], object], chunk: bytes) -> None:
        try:
            show(chunk)
        except (OSError, ValueError):  # its reader is gone, or the file was closed
            self._show = None
            self.is_closed = self._on_closed is not None
            if self._on_closed is not None:
                self._on_closed()

    def text(self) -> str:
        """Return what was read. Does not wait for a grandchild that holds the pipe open."""
        self._thread.join(WAIT_SECONDS)
        tail = bytes(self._tail[-self._tail_size :])
        omitted = self._size - len(self._head) - len(tail)
        mark = f"\n[… {omitted:,} bytes omitted …]\n".encode() if omitted and self._head_size else b""
        return (bytes(self._head) + mark + tail).decode("utf-8", "replace")
