"""Worker processes with PID files: each in its own process group, adoptable after a crash, terminated gracefully."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, Protocol

from rung.adapters.system.agent_processes import end_agent, outside_agent
from rung.adapters.system.pid_file import launcher, read_pid, remove_pid
from rung.core.domain.errors import ConfigError
from rung.engine.process_identity import (
    ProcessId,
    group_members,
    initial_environment,
    is_alive,
    is_group_alive,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GRACE_SECONDS: Final = 5.0  # between SIGTERM and SIGKILL
_PID_FILE_TIMEOUT_SECONDS: Final = 5.0  # time for the shell to write the PID file
_POLL_SECONDS: Final = 0.02
OWNER_VARIABLE: Final = "RUNG_PROCESS"  # in the environment of a launched process: the path of its PID file


def signal_group(pid: ProcessId, number: int) -> bool:
    """Send a signal to the process group. Return False if it has no live members."""
    if pid.number <= 1 or not is_group_alive(pid):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid.number, number)
        return True
    return False


def has_environment(pid: ProcessId, entry: str) -> bool:
    """Return whether the group's leader, or after its end any member, was started with this entry in its environment."""
    members = [pid.number] if is_alive(pid) else group_members(pid.number)
    return any(entry in initial_environment(member) for member in members)


class Processes(Protocol):
    """Process port of the conductor. The simulation implements it too."""

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
        """Start a command under this name. Its output is appended to the log of that name."""
        ...

    def alive(self, name: str) -> bool:
        """Return whether the process of this name is alive."""
        ...

    def output(self, name: str, *, latest: bool = False) -> str:
        """Return the tail of its output; with `latest`, only of the process that this conductor launched last."""
        ...

    def end(self, name: str, grace: float = GRACE_SECONDS) -> int | None:
        """Terminate it, by SIGKILL after the grace period, and remove its PID file. Also cleans up after a dead process.

        Without a grace period it is killed at once, and does nothing any more.

        Return its exit code as subprocess reports it, or None if another conductor started it.
        """
        ...


class RealProcesses:
    """Processes of this machine, identified by PID files in one directory."""

    TAIL: Final = 4_096

    def __init__(self, directory: Path) -> None:
        directory = directory.resolve()
        self.pids = directory / "pids"
        self.logs = directory / "logs"
        for place in (self.pids, self.logs):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._log_starts: dict[str, int] = {}  # size of the log when its process was launched

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
        """Start a command and wait for its PID file."""
        file = self.pid_file(name)
        remove_pid(file)  # of a process that was killed: nobody may take it for the new one
        self._reap()
        with self._open_log(name) as log:
            self._log_starts[name] = log.seek(0, os.SEEK_END)
            child = subprocess.Popen(  # noqa: S603  # the user's own command
                launcher(file, command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**outside_agent(os.environ), **environment, OWNER_VARIABLE: str(file)},
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

    def output(self, name: str, *, latest: bool = False) -> str:
        """Return the tail of its output; with `latest`, nothing that was logged before its launch."""
        try:
            with (self.logs / f"{_checked(name)}.log").open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_starts.get(name, end) if latest else 0, end - self.TAIL))
                return log.read(self.TAIL).decode("utf-8", "replace")
        except OSError:
            return ""

    def end(self, name: str, grace: float = GRACE_SECONDS) -> int | None:
        """Terminate it. The PID file is removed last, so that a successor can complete an interrupted termination."""
        pid = self.pid(name)
        end_agent(frozenset((self._owner_entry(name),)), grace=grace, reap=self._reap)
        if pid is not None and self._is_ours(name, pid):
            self._terminate_group(pid, grace)
        elif pid is not None and is_group_alive(pid):
            with self._open_log(name) as log:
                log.write(f"rung: {pid.number} was not started here as {name}: it is not signalled\n".encode())
        self._reap()
        remove_pid(self.pid_file(name))
        child = self._children.pop(name, None)
        return None if child is None else child.returncode

    def _is_ours(self, name: str, pid: ProcessId) -> bool:
        """Return whether the process was launched under this name, here or by an earlier conductor."""
        child = self._children.get(name)
        if child is not None and child.pid == pid.number and child.returncode is None:
            return True
        return has_environment(pid, self._owner_entry(name))

    def _owner_entry(self, name: str) -> str:
        return f"{OWNER_VARIABLE}={self.pid_file(name)}"

    def _open_log(self, name: str) -> IO[bytes]:
        """Open the log of this name for appending; raises OSError if a link or a pipe lies in its place."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(self.logs / f"{_checked(name)}.log", flags, 0o600), "ab")

    def _terminate_group(self, pid: ProcessId, grace: float) -> None:
        if grace > 0 and signal_group(pid, signal.SIGTERM):
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
        return self.pids / f"{_checked(name)}.pid"

    def remove_empty_directories(self) -> None:
        """Remove the directories that are empty."""
        for place in (self.pids, self.logs, self.pids.parent):
            with suppress(OSError):
                place.rmdir()


def _checked(name: str) -> str:
    """Return the name of a process, if it is a file name."""
    if not name or "/" in name or "\0" in name or name.startswith("."):
        raise ConfigError("name", name, "the name of a file, without / and not beginning with a dot")
    return name
