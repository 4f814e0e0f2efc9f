"""PID files with start times: a process that got the number of a dead one is never taken for it."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROC: Final = Path("/proc")
_BOOT: Final = _PROC / "sys/kernel/random/boot_id"
# The child writes the file itself, and then becomes the command: whoever launches it may die at any moment, and
# there is never a worker that no file tells of.
_LAUNCHER: Final = """\
if [ -r "/proc/$$/stat" ]; then
  read -r boot </proc/sys/kernel/random/boot_id; read -r stat <"/proc/$$/stat"
  started="$boot $stat"
else
  started="ps $(LC_ALL=C ps -o lstart= -p $$)"
fi
printf '%s %s\\n' "$$" "$started" >"$0.new" && mv "$0.new" "$0" && exec "$@"
"""


class Pid(NamedTuple):
    """A process, and when it began: its number alone may be another's by now."""

    number: int
    started: str


def launcher(file: Path, command: Sequence[str]) -> list[str]:
    """The command, behind a shell that writes its PID file first."""
    return ["/bin/sh", "-c", _LAUNCHER, str(file), *command]


def read_pid(file: Path) -> Pid | None:
    """Whose file it is; None where there is none, or nothing one could read."""
    try:
        number, _, rest = file.read_text().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return None
    if not number.isdigit():
        return None
    boot, _, stat = rest.partition(" ")
    started = " ".join(stat.split()) if boot == "ps" else f"{boot} {_ticks(stat)}"
    return Pid(int(number), started)


def write_pid(file: Path, pid: Pid) -> None:
    """For a process that is already running: our own."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    boot, _, ticks = pid.started.partition(" ")
    filler = " ".join("0" * 19)  # as the kernel writes it: the time is the twenty-second field
    new.write_text(f"{pid.number} {boot} {pid.number} (rung) {filler} {ticks}\n")
    new.replace(file)


def me() -> Pid:
    """This process."""
    pid = find(os.getpid())
    assert pid is not None  # noqa: S101  # we are alive
    return pid


def find(number: int) -> Pid | None:
    """The process of this number, if one is alive. A zombie is not."""
    try:
        stat = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return None if _PROC.joinpath("self").exists() else _by_ps(number)
    if _field(stat, 3) in "ZX":
        return None
    return Pid(number, f"{_BOOT.read_text().strip()} {_ticks(stat)}")


def alive(pid: Pid) -> bool:
    """Is it that very process, and does it live?"""
    return find(pid.number) == pid


def group(pid: Pid) -> bool:
    """Is anything left of what it started? Its number cannot be given away while its group has members."""
    if alive(pid):
        return True
    if find(pid.number) is not None:
        return False  # the number is another's: so the group was empty
    return any(_leader(entry) == pid.number for entry in _PROC.iterdir() if entry.name.isdigit())


def signal_group(pid: Pid, number: int) -> bool:
    """Send a signal to the process and all it started; False when there is nobody of it left."""
    if not group(pid):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid.number, number)
        return True
    return False


def busy_seconds(leader: int) -> int:
    """Seconds of processor time of a group's living members: an agent that prints nothing until its end still moves."""
    ticks = 0
    for entry in _PROC.iterdir() if _PROC.joinpath("self").exists() else ():
        if entry.name.isdigit() and _leader(entry) == leader:
            with suppress(OSError, IndexError):
                stat = (entry / "stat").read_text()
                ticks += sum(int(_field(stat, n)) for n in (14, 15, 16, 17))
    return ticks // os.sysconf("SC_CLK_TCK")


def _leader(entry: Path) -> int | None:
    """The group of a living process."""
    try:
        stat = (entry / "stat").read_text()
    except OSError:
        return None
    return None if _field(stat, 3) in "ZX" else int(_field(stat, 5))


def _field(stat: str, n: int) -> str:
    """A field of the kernel's line, counted as its manual does. The name, the second, may hold anything."""
    return stat.rpartition(")")[2].split()[n - 3]


def _ticks(stat: str) -> str:
    try:
        return _field(stat, 22)
    except IndexError:
        return ""


def _by_ps(number: int) -> Pid | None:
    """Where there is no /proc."""
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
    return Pid(number, " ".join(found[2].split()))
