"""Client of the resident hook server, which has everything loaded and answers within a millisecond.

It asks over a Unix socket that must belong to this user, as must the process behind it. With a port it asks over HTTP on
loopback, where anybody may listen: the server proves the secret of `serve.secret` before it gets an event.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

SOCKET_FILE: Final = "serve.sock"
SECRET_FILE: Final = "serve.secret"  # noqa: S105  # a file's name
CODE_DIR: Final = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib costs milliseconds
DEFAULT_PORT: Final = 8643  # port of `rung hooks serve --http`
RESIDENT_VARIABLE: Final = "RUNG_HOOKS_RESIDENT"
_MAX_HEAD_BYTES: Final = 65_536
NONCE_HEADER, PROOF_HEADER = "x-rung-nonce", "x-rung-proof"


def send_event(data_dir: str, agent: str, payload: bytes, port: int = 0) -> bytes | None:
    """Send an event to the server and return the response; None if no server answers that is this user's."""
    link = _connect_port(port) if port else connect(data_dir)
    if link is None:
        return None
    journal = os.environ.get("RUNG_JOURNAL", "").encode("utf-8", "surrogateescape")
    try:
        head = b"x-rung-code: %b\r\nx-rung-journal: %b\r\n" % (os.fsencode(CODE_DIR), b" ".join(journal.split()))
        if port:
            proof = _exchange_proofs(link, data_dir, port)
            if not proof:
                return None
            head += f"{PROOF_HEADER}: {proof}\r\n".encode()
        status, _, answer = _request(link, b"/" + agent.encode(), head, payload)
    except OSError:
        return None
    finally:
        link.close()
    return answer if status == b"200" and answer else None


def connect(data_dir: str) -> Any:
    """Return a connection to the Unix socket of a server of this user; None if there is none."""
    import _socket  # `socket` would also import selectors and enum

    path = os.path.join(data_dir, SOCKET_FILE)  # noqa: PTH118
    if not hasattr(_socket, "AF_UNIX"):
        return None
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if os.lstat(path).st_uid == os.geteuid():
            link.connect(path)
            if peer_uid(link) == os.geteuid():
                return link
    except OSError:
        pass  # there is none, or it was killed
    link.close()
    return None


def peer_uid(link: Any) -> int:
    """Return the account of the process at the other end of a Unix socket."""
    import _socket

    # struct ucred of Linux and struct xucred of macOS and BSD both have the account in their second word.
    level, option = (_socket.SOL_SOCKET, _socket.SO_PEERCRED) if hasattr(_socket, "SO_PEERCRED") else (0, 1)
    return int.from_bytes(link.getsockopt(level, option, 128)[4:8], sys.byteorder)


def _connect_port(port: int) -> Any:
    import _socket

    link = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        link.connect(("127.0.0.1", port))
    except OSError:
        link.close()
        return None
    return link


def prove(secret: str, side: str, port: int, nonce: str) -> str:
    """Return what only a holder of the secret can say. The port is in it, so that a proof cannot be relayed from another."""
    import hmac

    return hmac.new(secret.encode(), f"{side} {port} {nonce}".encode("utf-8", "replace"), "sha256").hexdigest()


def _exchange_proofs(link: Any, data_dir: str, port: int) -> str:
    """Have the server prove the secret; return our own proof for this connection, empty if the server's does not hold."""
    import hmac

    from rung.wiring.secret_file import read_secret

    secret, nonce = read_secret(os.path.join(data_dir, SECRET_FILE)), os.urandom(16).hex()  # noqa: PTH118
    if not secret:
        return ""
    status, headers, _ = _request(link, b"/hello", f"{NONCE_HEADER}: {nonce}\r\n".encode(), b"")
    expected = prove(secret, "server", port, nonce)
    if status != b"200" or not hmac.compare_digest(headers.get(PROOF_HEADER, "").encode(), expected.encode()):
        return ""
    return prove(secret, "client", port, headers.get(NONCE_HEADER, ""))


def _request(link: Any, path: bytes, head: bytes, body: bytes) -> tuple[bytes, dict[str, str], bytes]:
    """Post a body; return status, headers and body of the answer. An answer that is cut short has an empty status."""
    link.sendall(b"POST %b HTTP/1.1\r\n%bcontent-length: %d\r\n\r\n" % (path, head, len(body)) + body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = link.recv(65_536)
        if not piece or len(answer) > _MAX_HEAD_BYTES:
            return b"", {}, b""
        answer += piece
    top, _, found = answer.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return b"", {}, b""
    while len(found) < int(length):
        piece = link.recv(65_536)
        if not piece:
            return b"", {}, b""
        found += piece
    return first.split(" ")[1].encode() if " " in first else b"", headers, found


def start_server(data_dir: str) -> None:
    """Start a server in the background unless one runs; it ends after an idle timeout."""
    if os.environ.get(RESIDENT_VARIABLE) == "0":
        return
    link = connect(data_dir)
    if link is not None:
        link.close()
        return
    from rung.hooks.spool import spawn_detached

    spawn_detached("rung.hooks.resident_server", data_dir)
