"""Process identity: a PID with its start time and boot id, so that a reused PID is not mistaken for the old process.

Standard library only. The store identifies the owner of a durable run by it; the conductor and pipelines, their workers.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")


class ProcessId(NamedTuple):
    """Process of this machine. `started` is its boot id and start tick, or the output of `ps` without /proc."""

    number: int
    started: str


class ProcessPlace(NamedTuple):
    """PID of a process's parent, and the id of its session as setsid(2) makes it."""

    parent: int
    session: int


class ProcessOwner(NamedTuple):
    """Process of any machine, identified by host, boot id and PID namespace."""

    host: str
    boot: str
    namespace: str
    pid: int
    start: str

    def text(self) -> str:
        """Return the stored form."""
        return json.dumps(self)


def current_process() -> ProcessId:
    """Return the identity of this process."""
    pid = lookup(os.getpid())
    assert pid is not None  # noqa: S101  # this process is alive
    return pid


def lookup(number: int) -> ProcessId | None:
    """Return the live process with this PID, or None. A zombie counts as dead."""
    try:
        stat = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return None if _PROC.joinpath("self").exists() else _by_ps(number)
    return None if _is_zombie(stat) else ProcessId(number, f"{_local_machine()[1]} {start_tick(stat)}")


def is_alive(pid: ProcessId) -> bool:
    """Return whether this exact process is alive."""
    return lookup(pid.number) == pid


def current_owner() -> ProcessOwner:
    """Return the identity of this process in a form that is valid across machines."""
    return ProcessOwner(*_local_machine(), os.getpid(), _start(current_process()))


def is_gone(text: str) -> bool:
    """Return whether a stored owner is certainly gone. False if it cannot be examined: then its lease decides."""
    try:
        owner = ProcessOwner(*json.loads(text))
    except (ValueError, TypeError):
        return not text  # empty means no owner; an unreadable owner cannot be examined
    host, boot, _ = here = _local_machine()
    if tuple(owner[:3]) != here:
        return owner.host == host and bool(owner.boot) and owner.boot != boot  # the host has rebooted since
    process = lookup(owner.pid)
    return process is None or _start(process) != owner.start


def current_machine() -> str:
    """Return the identity of this machine: host name, boot id and PID namespace, in the stored form."""
    return json.dumps(_local_machine())


def is_elsewhere(text: str) -> bool:
    """Return whether a stored machine or process is another machine's, or another PID namespace's: not seen from here.

    An earlier boot of this host is not elsewhere: its processes are gone.
    """
    try:
        host, boot, namespace = json.loads(text)[:3]
    except (ValueError, TypeError):
        return False  # unknown
    here = _local_machine()
    return bool(host != here[0] or (boot == here[1] and namespace != here[2]))


def is_group_alive(pid: ProcessId) -> bool:
    """Return whether the process group that it leads has live members. A PID is not reused while its group exists."""
    if is_alive(pid):
        return True
    if lookup(pid.number) is not None:
        return False  # the PID was reused, so the group is empty
    return bool(_group_stats(pid.number))


def group_cpu_seconds(leader: int) -> int:
    """Return the CPU seconds of a group's live members: a sign of progress of an agent that prints nothing."""
    ticks = sum(int(_field(stat, n)) for stat in _group_stats(leader) for n in (14, 15, 16, 17))
    return ticks // os.sysconf("SC_CLK_TCK")


def group_members(leader: int) -> list[int]:
    """Return the PIDs of the live members of a process group."""
    return [int(stat.partition(" ")[0]) for stat in _group_stats(leader)]


def live_processes() -> dict[int, ProcessPlace]:
    """Return the place of every live process, by PID; empty on systems without /proc."""
    return {int(stat.partition(" ")[0]): _place(stat) for stat in _live_stats()}


def live_processes_with(variable: str, entries: frozenset[str]) -> dict[int, ProcessPlace]:
    """Return the place of every live process that was started with this variable and these environment entries.

    Few processes have the variable: what the others were started with is not decoded, and their state is not read.
    """
    places = {}
    prefix = f"{variable}="
    for number in _numbers():
        with suppress(OSError):
            if prefix.encode() not in (_PROC / number / "environ").read_bytes():
                continue
            stat = (_PROC / number / "stat").read_text()
            environment = initial_environment(int(number))
            has_variable = any(entry.startswith(prefix) for entry in environment)
            if has_variable and entries.issubset(environment) and not _is_zombie(stat):
                places[int(number)] = _place(stat)
    return places


def initial_environment(number: int) -> list[str]:
    """Return the environment that a process was started with; empty if it is gone or another account's."""
    try:
        return (_PROC / str(number) / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        pass
    if _PROC.joinpath("self").exists():
        return []
    return subprocess.run(  # noqa: S603  # the only argument is a number
        ["/bin/ps", "-E", "-ww", "-o", "command=", "-p", str(number)], capture_output=True, text=True, check=False
    ).stdout.split()


def is_stopped(number: int) -> bool:
    """Return whether a process is stopped, by a signal or a debugger."""
    try:
        return _field((_PROC / str(number) / "stat").read_text(), 3) in "Tt"
    except OSError:
        return False


def start_tick(stat: str) -> str:
    """Return the start time in a line of /proc/PID/stat, or an empty string."""
    try:
        return _field(stat, 22)
    except IndexError:
        return ""


def _group_stats(leader: int) -> list[str]:
    """Return the stat lines of the live members of a process group."""
    return [stat for stat in _live_stats() if int(_field(stat, 5)) == leader]


def _live_stats() -> list[str]:
    """Return the stat lines of all live processes."""
    stats = []
    for number in _numbers():
        with suppress(OSError):
            stat = (_PROC / number / "stat").read_text()
            if stat and not _is_zombie(stat):
                stats.append(stat)
    return stats


def _numbers() -> list[str]:
    """Return the PIDs of all processes; none on systems without /proc."""
    return [name for name in os.listdir(_PROC) if name.isdigit()] if _PROC.joinpath("self").exists() else []  # noqa: PTH208


def _place(stat: str) -> ProcessPlace:
    return ProcessPlace(parent=int(_field(stat, 4)), session=int(_field(stat, 6)))


@cache
def _local_machine() -> tuple[str, str, str]:
    """Return the host name, boot id and PID namespace."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # a name like pid:[4026531836], not a path
    except OSError:
        boot = namespace = ""
    return socket.gethostname(), boot, namespace


def _start(pid: ProcessId) -> str:
    return pid.started.removeprefix(f"{_local_machine()[1]} ")


def _is_zombie(stat: str) -> bool:
    """Return whether a stat line is that of a zombie, which never runs again."""
    return _field(stat, 3) in "ZX"


def _field(stat: str, n: int) -> str:
    """Return field `n` of a stat line, numbered as in proc(5). The second field, the name, may contain anything."""
    return stat.rpartition(")")[2].split()[n - 3]


def _by_ps(number: int) -> ProcessId | None:
    """Look up a process with `ps`, on systems without /proc."""
    run = subprocess.run(  # noqa: S603  # the only argument is a number
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(number)],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C"},
    )
    match = re.match(r"\s*(\S+)\s+(.+)", run.stdout)
    if match is None or match[1].startswith("Z"):
        return None
    return ProcessId(number, " ".join(match[2].split()))
