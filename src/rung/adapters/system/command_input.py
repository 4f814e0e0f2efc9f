"""Standard input that is passed on to commands: byte for byte, while it still arrives, and again to each later attempt."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, Final

from rung.adapters.system.command_output import KeptBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES: Final = 65_536
MAX_MEMORY_BYTES: Final = 1 << 20  # the rest is in a temporary file
MAX_TEXT_BYTES: Final = 1 << 20  # what prompts, judges and the journal see


class CommandInput:
    """Bytes read from a file descriptor in the background, kept for every attempt. `None` as descriptor: no input."""

    def __init__(self, descriptor: int | None) -> None:
        self._kept = KeptBytes(MAX_MEMORY_BYTES)
        self._size = 0
        self._has_ended = descriptor is None
        self._changed = threading.Condition()
        if descriptor is not None:
            threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()

    @property
    def size(self) -> int:
        """Number of bytes that have arrived."""
        return self._size

    def wait_for_end(self, seconds: float) -> bool:
        """Return whether the input has ended, after at most `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_ended, seconds)

    def text(self, seconds: float | None = 0.0) -> str:
        """Return the start of the input as text, once it has ended or after `seconds` (None: only then)."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, seconds)
            return self._part(0, MAX_TEXT_BYTES).decode("utf-8", "replace")

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole input, from its start to its end; waits for what has not arrived yet."""
        at = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda at=at: self._has_ended or self._size > at)  # type: ignore[misc]  # bound at once
                chunk = self._part(at, CHUNK_BYTES)
            if not chunk:
                return
            yield chunk
            at += len(chunk)

    def digest(self) -> str:
        """Return the SHA-256 of the whole input; waits for its end."""
        made = hashlib.sha256()
        for chunk in self.chunks():
            made.update(chunk)
        return made.hexdigest()

    def insert_into(self, prompt: str, text: str) -> Iterator[bytes]:
        """Yield the prompt with the input in place of its text, which may be cut or not be UTF-8."""
        text = text.strip()  # as a prompt has it
        before, found, after = prompt.rpartition(text) if text else (prompt, "", "")
        if text and not found:  # a rung has written another task
            before, after = prompt, ""
        if not before.strip() and not after.strip():
            before = after = ""  # the prompt is the input
        yield before.encode("utf-8", "replace")
        if found or not text:
            yield from self.chunks()
        yield after.encode("utf-8", "replace")

    def _part(self, at: int, size: int) -> bytes:
        self._kept.seek(at)
        return self._kept.read(size)

    def _read(self, descriptor: int) -> None:
        chunk = b"more"
        while chunk:
            try:
                chunk = os.read(descriptor, CHUNK_BYTES)
            except OSError:  # the terminal or the peer is gone
                chunk = b""
            with self._changed:
                self._kept.seek(0, os.SEEK_END)
                self._kept.write(chunk)
                self._size += len(chunk)
                self._has_ended = not chunk
                self._changed.notify_all()
