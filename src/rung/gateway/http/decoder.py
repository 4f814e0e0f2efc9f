"""Decompression of response bodies in pieces of bounded size, so that a small body cannot fill the memory."""

from __future__ import annotations

import zlib
from collections import deque
from typing import Final

ENCODINGS: Final = frozenset({b"gzip", b"x-gzip", b"deflate"})
_GZIP_OR_DEFLATE: Final = 32 + zlib.MAX_WBITS  # zlib detects gzip or deflate from the first bytes
_MAX_OUTPUT_BYTES: Final = 256 * 1024
_INPUT_BYTES: Final = 16 * 1024  # what follows a gzip member is copied, so the input is fed in small slices


class BodyDecoder:
    """Decodes a gzip body of any number of members, or a deflate body."""

    __slots__ = ("_input", "_output_is_full", "_started", "_zlib")

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_GZIP_OR_DEFLATE)
        self._input: deque[bytes] = deque()
        self._output_is_full = False  # zlib may hold more output
        self._started = False

    @property
    def has_more(self) -> bool:
        """Return whether `decode` can return more without more input."""
        return bool(self._input) or self._output_is_full

    @property
    def is_complete(self) -> bool:
        """Return whether all input was decoded and ended with the end of a member; an empty body is complete."""
        return not self.has_more and (self._zlib.eof or not self._started)

    def decode(self, data: bytes = b"") -> bytes:
        """Return the next piece of output; empty if more input is needed. Raise zlib.error for invalid input."""
        self._input.extend(data[at : at + _INPUT_BYTES] for at in range(0, len(data), _INPUT_BYTES))
        while self.has_more:
            part = self._input.popleft() if self._input else b""
            if self._zlib.eof:
                part = part.lstrip(b"\0")  # gzip allows padding between members
                if not part:
                    continue
                self._zlib = zlib.decompressobj(_GZIP_OR_DEFLATE)
            self._started = True
            output = self._zlib.decompress(part, _MAX_OUTPUT_BYTES)
            self._output_is_full = len(output) == _MAX_OUTPUT_BYTES
            rest = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
            if rest:
                self._input.appendleft(rest)
            if output:
                return output
        return b""
