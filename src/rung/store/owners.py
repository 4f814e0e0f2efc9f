"""Who owns a run: told so exactly that a dead process is not taken for a living one, or the other way round."""

from __future__ import annotations

import json
import os
import socket
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Owner(NamedTuple):
    """One process, on one boot of one host, in one namespace of process ids."""

    host: str
    boot: str
    namespace: str
    pid: int
    start: str

    def text(self) -> str:
        """As it is kept."""
        return json.dumps(self)


def me() -> Owner:
    """This process."""
    return Owner(*_here(), os.getpid(), _start(os.getpid()))


def dead(text: str) -> bool:
    """Is this owner surely gone? One on another host, or that we cannot look at, is not: its lease decides."""
    try:
        owner = Owner(*json.loads(text))
    except (ValueError, TypeError):
        return not text  # nobody; what we cannot read we do not judge
    if tuple(owner[:3]) != _here():
        # The same host after a restart: nothing that ran before is still there.
        return owner.host == _here()[0] and bool(owner.boot) and owner.boot != _here()[1]
    start = _start(owner.pid)
    return start != owner.start  # no such process, or another one that got its number


@cache
def _here() -> tuple[str, str, str]:
    return socket.gethostname(), _read("/proc/sys/kernel/random/boot_id"), _link("/proc/self/ns/pid")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  # a name like pid:[4026531836], no path
    except OSError:
        return ""


def _start(pid: int) -> str:
    """When a process started, in the system's own ticks; empty when there is no such process.

    A zombie counts as gone: it will never write again.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _alive(pid)
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _alive(pid: int) -> str:
    """Where there is no /proc: whether it is there is all we can tell."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "there"
    return "there"
