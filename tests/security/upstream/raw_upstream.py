"""An upstream that sends scripted bytes, on loopback in threads."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from rung.core.policy.parser import parse_policy_file
from rung.gateway.settings import settings_from
from tests.gateway.behind import NEVER, TIMEOUTS, Behind

if TYPE_CHECKING:
    from rung.gateway.settings import GatewaySettings

Script = Callable[[bytes], bytes | Iterable[bytes]]


class RawUpstream:
    """Answers each request with the bytes that the script returns for it; keeps the connection open unless told."""

    def __init__(self, script: Script | bytes, *, close: bool = False, tls: object = None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.resets = False  # a connection that is closed is reset
        upstream = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                upstream.connections += 1
                with contextlib.suppress(OSError):
                    while request := _request(self.request):
                        upstream.requests.append(request)
                        answer = script if isinstance(script, bytes) else script(request)
                        for piece in [answer] if isinstance(answer, bytes) else answer:
                            self.request.sendall(piece)
                        if close:
                            if upstream.resets:
                                linger = struct.pack("ii", 1, 0)
                                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                                self.request.close()
                            break

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False
            allow_reuse_address = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Stay silent: a client that leaves is expected."""

            def get_request(self) -> tuple[socket.socket, object]:
                connection, address = super().get_request()
                return (tls.wrap_socket(connection, server_side=True) if tls else connection), address  # type: ignore[attr-defined]

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _request(connection: socket.socket) -> bytes:
    """Return one request, with the body that its content-length declares; empty at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65_536)
        if not received:
            return b""
        data += received
    head = data.partition(b"\r\n\r\n")[0]
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(data) < len(head) + 4 + length:
        data += connection.recv(65_536)
    return data


def http_answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Return a whole HTTP response."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Front(Behind):
    """A gateway whose upstreams are only those of its settings."""

    def settings(self, **more: Any) -> GatewaySettings:
        table = {"timeouts": TIMEOUTS, "probe_seconds": NEVER, "port": 0, **self._settings, **more}
        return settings_from(table, parse_policy_file({"policy": self.policy_table}))
