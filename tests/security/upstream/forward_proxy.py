"""A forward proxy as companies run it: CONNECT and absolute-form requests, with a user and a password."""

from __future__ import annotations

import base64
import contextlib
import socket
import socketserver
import threading
from typing import Self


class ForwardProxy:
    """Connects every tunnel and request to one port on loopback, whatever host they name."""

    def __init__(self, port: int, *, password: str = "", refuse: bytes = b"") -> None:
        self.heads: list[bytes] = []
        proxy = self
        allowed = b"proxy-authorization: Basic " + base64.b64encode(f"bob:{password}".encode())

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += self.request.recv(65_536)
                proxy.heads.append(head)
                if refuse or (password and allowed not in head):
                    self.request.sendall(refuse or b"HTTP/1.1 407 No\r\ncontent-length: 2\r\n\r\nno")
                    return
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as upstream:
                    if head.startswith(b"CONNECT "):
                        self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    else:
                        upstream.sendall(head)
                    back = threading.Thread(target=_copy, args=(upstream, self.request), daemon=True)
                    back.start()
                    _copy(self.request, upstream)
                    back.join()

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads, self._server.block_on_close = True, False
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
