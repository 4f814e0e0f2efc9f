"""Process identity: a process id with its start time and boot, so that a reused id is never taken for the old process.

Standard library only. The store names the owner of a durable run with it, the conductor and pipelines their workers.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")


class ProcessId(NamedTuple):
    """A process of this machine. `started` is its boot id and start tick, or what `ps` says where there is no /proc."""

    number: int
    started: str


class ProcessOwner(NamedTuple):
    """A process of any machine: one boot of one host, one namespace of process ids."""

    host: str
    boot: str
    namespace: str
    pid: int
    start: str

    def text(self) -> str:
        """The stored form."""
        return json.dumps(self)


def current_process() -> ProcessId:
    """This process."""
    pid = lookup(os.getpid())
    assert pid is not None  # noqa: S101  # we are alive
    return pid


def lookup(number: int) -> ProcessId | None:
    """The living process of this number; None where there is none, or only a zombie."""
    try:
        stat = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return None if _PROC.joinpath("self").exists() else _by_ps(number)
    return None if _is_zombie(stat) else ProcessId(number, f"{_here()[1]} {start_tick(stat)}")


def is_alive(pid: ProcessId) -> bool:
    """Whether that very process is alive."""
    return lookup(pid.number) == pid


def current_owner() -> ProcessOwner:
    """This process, for other machines to read."""
    return ProcessOwner(*_here(), os.getpid(), _start(current_process()))


def is_gone(text: str) -> bool:
    """Whether the owner in this stored form is certainly gone. One that cannot be examined is not: its lease decides."""
    try:
        owner = ProcessOwner(*json.loads(text))
    except (ValueError, TypeError):
        return not text  # no owner at all; an unreadable one is not judged
    host, boot, _ = here = _here()
    if tuple(owner[:3]) != here:
        return owner.host == host and bool(owner.boot) and owner.boot != boot  # this host, restarted since
    found = lookup(owner.pid)
    return found is None or _start(found) != owner.start


def is_group_alive(pid: ProcessId) -> bool:
    """Whether anything is left of the process group it leads. Its number is not reused while the group has members."""
    if is_alive(pid):
        return True
    if lookup(pid.number) is not None:
        return False  # the number was reused, so the group was empty
    return bool(_group_stats(pid.number))


def group_cpu_seconds(leader: int) -> int:
    """Processor time of a group's living members: an agent that prints nothing until its end still makes progress."""
    ticks = sum(int(_field(stat, n)) for stat in _group_stats(leader) for n in (14, 15, 16, 17))
    return ticks // os.sysconf("SC_CLK_TCK")


def start_tick(stat: str) -> str:
    """The start time in a line of /proc/PID/stat; empty where it has none."""
    try:
        return _field(stat, 22)
    except IndexError:
        return ""


def _group_stats(leader: int) -> list[str]:
    """The stat lines of the living members of a process group."""
    stats = []
    for entry in _PROC.iterdir() if _PROC.joinpath("self").exists() else ():
        try:
            stat = (entry / "stat").read_text() if entry.name.isdigit() else ""
        except OSError:
            continue
        if stat and not _is_zombie(stat) and int(_field(stat, 5)) == leader:
            stats.append(stat)
    return stats


@cache
def _here() -> tuple[str, str, str]:
    """Host, boot and namespace of process ids."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # a name like pid:[4026531836], no path
    except OSError:
        boot = namespace = ""
    return socket.gethostname(), boot, namespace


def _start(pid: ProcessId) -> str:
    return pid.started.removeprefix(f"{_here()[1]} ")


def _is_zombie(stat: str) -> bool:
    """A zombie never writes again."""
    return _field(stat, 3) in "ZX"


def _field(stat: str, n: int) -> str:
    """A field of the kernel's line, counted as its manual does. The second, the name, may hold anything."""
    return stat.rpartition(")")[2].split()[n - 3]


def _by_ps(number: int) -> ProcessId | None:
    """A lookup for systems without /proc."""
    run = subprocess.run(  # noqa: S603  # a number, nothing else
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(number)],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C"},
    )
    found = re.match(r"\s*(\S+)\s+(.+)", run.stdout)
    if found is None or found[1].startswith("Z"):
        return None
    return ProcessId(number, " ".join(found[2].split()))
