"""Response that writes a file first and then sends it, within a limit on how many are in progress."""

from __future__ import annotations

import asyncio
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from starlette.types import Receive, Scope, Send

CHUNK_BYTES: Final = 64 * 1024
STALL_SECONDS: Final = 60.0  # a client that takes no chunk for this long is dropped: it holds a slot


class ExportResponse(Response):
    """Writes to a temporary file, since an export may be larger than memory; a write error is still a problem response."""

    def __init__(
        self,
        write: Callable[[IO[bytes]], object],
        slot: AbstractContextManager[None],
        *,
        stall_seconds: float = STALL_SECONDS,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        del self.headers["content-length"]
        self._write = write
        self._slot = slot
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Take a slot, write the file in a thread, and send it as fast as the client reads."""
        with self._slot, tempfile.TemporaryFile() as file:
            await asyncio.to_thread(self._write, file)
            file.seek(0)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while chunk := file.read(CHUNK_BYTES):
                message = {"type": "http.response.body", "body": chunk, "more_body": True}
                await asyncio.wait_for(send(message), self._stall_seconds)
            await send({"type": "http.response.body", "body": b""})
