"""Asking the process that is already there: it has everything loaded, and answers in a millisecond."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

FILE: Final = "serve"  # where it says how it is reached: port, secret, and whose code it runs
HOME: Final = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib costs milliseconds
PORT: Final = 8643  # of a service that agents post to
OFF: Final = "RUNG_HOOKS_RESIDENT"


def reached(place: str) -> tuple[int, str] | None:
    """The port and the secret of a process that runs this very code; None: there is none."""
    try:
        with open(os.path.join(place, FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            port, token, home = file.read(2_000).rstrip("\n").split(" ", 2)
    except (OSError, ValueError):
        return None
    return (int(port), token) if home == HOME and port.isdecimal() else None


def asked(place: str, agent: str, told: bytes) -> bytes | None:
    """Its answer; None where nobody is there."""
    found = reached(place)
    if found is None:
        return None
    import _socket  # what `socket` is made of, which loads selectors and enum

    link = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        try:
            link.connect(("127.0.0.1", found[0]))
        except OSError:
            return None  # it was ended before it could take its file away
        head = f"{found[1]} {agent} {len(told)} {os.environ.get('RUNG_JOURNAL', '')}\n"
        link.sendall(head.encode("utf-8", "surrogateescape") + told)
        answer = b""
        while piece := link.recv(65_536):
            answer += piece
    finally:
        link.close()
    return answer.strip() or None


def start(place: str) -> None:
    """Have one started, which nobody waits for; it ends when it is not asked for some minutes."""
    if os.environ.get(OFF) == "0" or reached(place) is not None:
        return
    from rung.hooks.spool import apart

    apart("rung.hooks.resident_server", place)
