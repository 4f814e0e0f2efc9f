"""HTTP of the resident hook server: over its Unix socket, and over loopback, where both sides prove a secret."""

from __future__ import annotations

import hmac
import secrets
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import AddressUnavailable
from rung.hooks.resident_client import CODE_DIR, NONCE_HEADER, PROOF_HEADER, SECRET_FILE, prove
from rung.wiring.secret_file import load_secret

if TYPE_CHECKING:
    from rung.hooks.resident_server import ResidentServer

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024  # of one event
_READ_TIMEOUT_SECONDS: Final = 30.0  # for a complete event


class Handler(BaseHTTPRequestHandler):
    """Handler of one connection, whose other end is known to belong to this account."""

    protocol_version = "HTTP/1.1"
    timeout = _READ_TIMEOUT_SECONDS
    server: ResidentServer | HttpListener

    def do_POST(self) -> None:  # the name is the base class's
        """Answer one event."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MAX_EVENT_BYTES:  # noqa: PLR2004  # digits
            self.reply(411, b'{"error": "content-length: required, at most 32 MB"}')
        elif not self.is_authorized():
            self.reply(401, b'{"error": "prove the secret in serve.secret first"}')
        elif self._header("x-rung-code", CODE_DIR) != CODE_DIR:
            self.reply(409, b'{"error": "this server runs other code"}')
        else:
            payload, journal = self.rfile.read(int(length)), self._header("x-rung-journal", "")
            self.reply(200, self.server.resident.answer(self.path.strip("/"), payload, journal))

    def _header(self, name: str, default: str) -> str:
        """Return a header that holds a path; the base class reads headers as Latin-1."""
        value = self.headers.get(name)
        return default if value is None else value.encode("latin-1").decode("utf-8", "surrogateescape")

    def is_authorized(self) -> bool:
        """Return whether an event is handled: always, since others were not let in."""
        return True

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        """Write a response; an error closes the connection."""
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.close_connection or status != 200  # noqa: PLR2004

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the signature of the base class
        """Log nothing: agents own the terminal."""


class HttpHandler(Handler):
    """Handler of one connection over loopback, whose other end may be anybody's until it proves the secret."""

    server: HttpListener
    _nonce = ""

    def do_GET(self) -> None:  # as above
        """Say which server this is, to whoever finds its port taken."""
        self.reply(405, b'{"error": "events are sent by POST"}', x_rung_server="hooks")

    def do_POST(self) -> None:  # as above
        """Prove the secret to a client, or answer one event of a client that has proved it."""
        if self.path != "/hello":
            return super().do_POST()
        self._nonce = secrets.token_hex(16)
        proof = prove(self.server.secret, "server", self.server.port, self.headers.get(NONCE_HEADER, ""))
        return self.reply(200, b"{}", **{NONCE_HEADER: self._nonce, PROOF_HEADER: proof})

    def is_authorized(self) -> bool:
        """Return whether the client proved the secret for this connection; a proof is used once."""
        nonce, self._nonce = self._nonce, ""
        expected = prove(self.server.secret, "client", self.server.port, nonce)
        return bool(nonce) and hmac.compare_digest(self.headers.get(PROOF_HEADER, "").encode(), expected.encode())


class HttpListener(socketserver.ThreadingTCPServer):
    """Listens on loopback beside the Unix socket, in a thread."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, resident: ResidentServer, port: int) -> None:
        self.resident = resident
        self.secret = load_secret(str(resident.data_dir / SECRET_FILE))
        try:
            super().__init__(("127.0.0.1", port), HttpHandler)
        except OSError as error:
            raise AddressUnavailable("port", "127.0.0.1", port, error) from None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        return int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error as the resident server does."""
        self.resident.handle_error(request, client_address)
