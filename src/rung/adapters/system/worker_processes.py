"""Worker processes behind PID files: each in a group of its own, adopted from a launcher that died, ended with grace."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from rung.engine.process_identity import ProcessId, is_alive, is_group_alive, start_tick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GRACE: Final = 5.0  # seconds between asking and forcing
_WRITTEN: Final = 5.0  # seconds a shell may take to write one line
_LOOK: Final = 0.02
# The child writes the file itself, and then becomes the command: whoever launches it may die at any moment, and
# there is never a worker without a file.
_LAUNCHER: Final = """\
if [ -r "/proc/$$/stat" ]; then
  read -r boot </proc/sys/kernel/random/boot_id; read -r stat <"/proc/$$/stat"
  started="$boot $stat"
else
  started="ps $(LC_ALL=C ps -o lstart= -p $$)"
fi
printf '%s %s\\n' "$$" "$started" >"$0.new" && mv "$0.new" "$0" && exec "$@"
"""


def launcher(file: Path, command: Sequence[str]) -> list[str]:
    """The command, behind a shell that writes its PID file first."""
    return ["/bin/sh", "-c", _LAUNCHER, str(file), *command]


def read_pid(file: Path) -> ProcessId | None:
    """The process in a PID file; None where there is no file, or it cannot be read."""
    try:
        number, _, rest = file.read_text().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return None
    if not number.isdigit():
        return None
    boot, _, stat = rest.partition(" ")
    started = " ".join(stat.split()) if boot == "ps" else f"{boot} {start_tick(stat)}"
    return ProcessId(int(number), started)


def write_pid(file: Path, pid: ProcessId) -> None:
    """Write the PID file of a process that is already running: our own."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    boot, _, ticks = pid.started.partition(" ")
    filler = " ".join("0" * 19)  # as the kernel writes it: the time is the twenty-second field
    new.write_text(f"{pid.number} {boot} {pid.number} (rung) {filler} {ticks}\n")
    new.replace(file)


def signal_group(pid: ProcessId, number: int) -> bool:
    """Send a signal to the process and all it started; False when nothing of it is left."""
    if not is_group_alive(pid):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid.number, number)
        return True
    return False


class Processes(Protocol):
    """What the conductor needs of processes. The simulation has its own."""

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
        """Start a command under this name; its output goes to the name's log."""
        ...

    def alive(self, name: str) -> bool:
        """Does the process of this name live?"""
        ...

    def output(self, name: str) -> str:
        """The tail of what it printed."""
        ...

    def end(self, name: str, grace: float = GRACE) -> int | None:
        """Ask it to end; make it, after the grace; forget its PID file. Also the clean-up after a dead one.

        How it ended, as Python counts exit codes; None where nobody knows: another conductor had started it.
        """
        ...


class RealProcesses:
    """Processes of this machine, told apart by PID files in one directory."""

    TAIL: Final = 4_096

    def __init__(self, directory: Path) -> None:
        self.pids = directory / "pids"
        self.logs = directory / "logs"
        for place in (self.pids, self.logs):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
        """Start it, and see that its PID file is there."""
        file = self.file(name)
        with (self.logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(  # noqa: S603  # running the user's command is what this is for
                launcher(file, command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                cwd=workdir,
                start_new_session=True,
            )
        self._children[name] = child
        until = time.monotonic() + _WRITTEN
        while read_pid(file) is None and child.poll() is None and time.monotonic() < until:
            time.sleep(_LOOK)

    def known(self) -> list[str]:
        """The names that have a PID file."""
        return sorted(file.stem for file in self.pids.glob("*.pid"))

    def pid(self, name: str) -> ProcessId | None:
        """Whose number the name's file holds."""
        return read_pid(self.file(name))

    def alive(self, name: str) -> bool:
        """Does the process of this name live?"""
        self._reap()
        pid = self.pid(name)
        return pid is not None and is_alive(pid)

    def output(self, name: str) -> str:
        """The tail of what it printed."""
        try:
            with (self.logs / f"{name}.log").open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - self.TAIL))
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def end(self, name: str, grace: float = GRACE) -> int | None:
        """First asked, then made to. The file goes last: until then a successor can finish this."""
        pid = self.pid(name)
        if pid is not None:
            self._end_group(pid, grace)
        self._reap()
        self.file(name).unlink(missing_ok=True)
        child = self._children.pop(name, None)
        return None if child is None else child.returncode

    def _end_group(self, pid: ProcessId, grace: float) -> None:
        if signal_group(pid, signal.SIGTERM):
            signal_group(pid, signal.SIGCONT)  # one that stands still cannot hear
        until = time.monotonic() + grace
        while is_group_alive(pid) and time.monotonic() < until:
            self._reap()
            time.sleep(_LOOK)
        while signal_group(pid, signal.SIGKILL):
            self._reap()
            time.sleep(_LOOK)

    def _reap(self) -> None:
        """Take note of children that ended, so that they are no zombies."""
        for child in list(self._children.values()):
            child.poll()

    def file(self, name: str) -> Path:
        """Where the name's PID file is."""
        return self.pids / f"{name}.pid"

    def tidy(self) -> None:
        """Take away what is empty of our folders."""
        for place in (self.pids, self.logs, self.pids.parent):
            with suppress(OSError):
                place.rmdir()
