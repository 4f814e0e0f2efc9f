"""Worker processes with PID files: each in its own process group, adoptable after a crash, terminated gracefully."""

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

GRACE_SECONDS: Final = 5.0  # between SIGTERM and SIGKILL
_PID_FILE_TIMEOUT_SECONDS: Final = 5.0  # time for the shell to write the PID file
_POLL_SECONDS: Final = 0.02
# The child writes the PID file itself and then executes the command: even if the launcher dies at any moment, there is
# never a worker without a PID file.
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
    """Return the command line of a shell that writes the PID file and then executes the command."""
    return ["/bin/sh", "-c", _LAUNCHER, str(file), *command]


def read_pid(file: Path) -> ProcessId | None:
    """Return the process in a PID file, or None if the file is missing or invalid."""
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
    """Write the PID file of a process that is already running."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    boot, _, ticks = pid.started.partition(" ")
    filler = " ".join("0" * 19)  # as in /proc/PID/stat: the start time is field 22
    new.write_text(f"{pid.number} {boot} {pid.number} (rung) {filler} {ticks}\n")
    new.replace(file)


def signal_group(pid: ProcessId, number: int) -> bool:
    """Send a signal to the process group. Return False if it has no live members."""
    if not is_group_alive(pid):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid.number, number)
        return True
    return False


class Processes(Protocol):
    """Process port of the conductor. The simulation implements it too."""

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
        """Start a command under this name. Its output is appended to the log of that name."""
        ...

    def alive(self, name: str) -> bool:
        """Return whether the process of this name is alive."""
        ...

    def output(self, name: str) -> str:
        """Return the tail of its output."""
        ...

    def end(self, name: str, grace: float = GRACE_SECONDS) -> int | None:
        """Terminate it, by SIGKILL after the grace period, and remove its PID file. Also cleans up after a dead process.

        Return its exit code as subprocess reports it, or None if another conductor started it.
        """
        ...


class RealProcesses:
    """Processes of this machine, identified by PID files in one directory."""

    TAIL: Final = 4_096

    def __init__(self, directory: Path) -> None:
        self.pids = directory / "pids"
        self.logs = directory / "logs"
        for place in (self.pids, self.logs):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
        """Start a command and wait for its PID file."""
        file = self.pid_file(name)
        with (self.logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(  # noqa: S603  # the user's own command
                launcher(file, command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                cwd=workdir,
                start_new_session=True,
            )
        self._children[name] = child
        until = time.monotonic() + _PID_FILE_TIMEOUT_SECONDS
        while read_pid(file) is None and child.poll() is None and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)

    def names(self) -> list[str]:
        """Return the names that have a PID file."""
        return sorted(file.stem for file in self.pids.glob("*.pid"))

    def pid(self, name: str) -> ProcessId | None:
        """Return the process in the PID file of this name."""
        return read_pid(self.pid_file(name))

    def alive(self, name: str) -> bool:
        """Return whether the process of this name is alive."""
        self._reap()
        pid = self.pid(name)
        return pid is not None and is_alive(pid)

    def output(self, name: str) -> str:
        """Return the tail of its output."""
        try:
            with (self.logs / f"{name}.log").open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - self.TAIL))
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def end(self, name: str, grace: float = GRACE_SECONDS) -> int | None:
        """Terminate it. The PID file is removed last, so that a successor can complete an interrupted termination."""
        pid = self.pid(name)
        if pid is not None:
            self._terminate_group(pid, grace)
        self._reap()
        self.pid_file(name).unlink(missing_ok=True)
        child = self._children.pop(name, None)
        return None if child is None else child.returncode

    def _terminate_group(self, pid: ProcessId, grace: float) -> None:
        if signal_group(pid, signal.SIGTERM):
            signal_group(pid, signal.SIGCONT)  # a stopped process cannot handle SIGTERM
        until = time.monotonic() + grace
        while is_group_alive(pid) and time.monotonic() < until:
            self._reap()
            time.sleep(_POLL_SECONDS)
        while signal_group(pid, signal.SIGKILL):
            self._reap()
            time.sleep(_POLL_SECONDS)

    def _reap(self) -> None:
        """Reap children that have ended, so that they do not stay zombies."""
        for child in list(self._children.values()):
            child.poll()

    def pid_file(self, name: str) -> Path:
        """Return the path of the PID file of this name."""
        return self.pids / f"{name}.pid"

    def remove_empty_directories(self) -> None:
        """Remove the directories that are empty."""
        for place in (self.pids, self.logs, self.pids.parent):
            with suppress(OSError):
                place.rmdir()
