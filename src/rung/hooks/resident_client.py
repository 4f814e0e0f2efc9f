"""Client of the resident hook server, which has everything loaded and answers within a millisecond."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

ADDRESS_FILE: Final = "serve"  # its content: port, token, and the directory of the code it runs
CODE_DIR: Final = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib costs milliseconds
DEFAULT_PORT: Final = 8643  # port of `rung hooks serve`
RESIDENT_VARIABLE: Final = "RUNG_HOOKS_RESIDENT"


def find_server(data_dir: str) -> tuple[int, str] | None:
    """Return port and token of a server that runs the same code; None if there is none."""
    try:
        with open(os.path.join(data_dir, ADDRESS_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            port, token, home = file.read(2_000).rstrip("\n").split(" ", 2)
    except (OSError, ValueError):
        return None
    return (int(port), token) if home == CODE_DIR and port.isdecimal() else None


def send_event(data_dir: str, agent: str, payload: bytes) -> bytes | None:
    """Send an event to the server and return the response; None if no server answers."""
    address = find_server(data_dir)
    if address is None:
        return None
    import _socket  # `socket` would also import selectors and enum

    link = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        try:
            link.connect(("127.0.0.1", address[0]))
        except OSError:
            return None  # stale file: the server was killed
        head = f"{address[1]} {agent} {len(payload)} {os.environ.get('RUNG_JOURNAL', '')}\n"
        link.sendall(head.encode("utf-8", "surrogateescape") + payload)
        answer = b""
        while piece := link.recv(65_536):
            answer += piece
    finally:
        link.close()
    return answer.strip() or None


def start_server(data_dir: str) -> None:
    """Start a server in the background unless one runs; it ends after an idle timeout."""
    if os.environ.get(RESIDENT_VARIABLE) == "0" or find_server(data_dir) is not None:
        return
    from rung.hooks.spool import spawn_detached

    spawn_detached("rung.hooks.resident_server", data_dir)
