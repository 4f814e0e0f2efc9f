"""Workers as real processes: launched in a group of their own, adopted from a conductor that died, ended with grace."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from rung.conductor.pids import Pid, alive, group, launcher, read_pid, signal_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GRACE: Final = 5.0  # seconds between asking and forcing
_WRITTEN: Final = 5.0  # seconds a shell may take to write one line
_LOOK: Final = 0.02


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

    def pid(self, name: str) -> Pid | None:
        """Whose number the name's file holds."""
        return read_pid(self.file(name))

    def alive(self, name: str) -> bool:
        """Does the process of this name live?"""
        self._reap()
        pid = self.pid(name)
        return pid is not None and alive(pid)

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

    def _end_group(self, pid: Pid, grace: float) -> None:
        if signal_group(pid, signal.SIGTERM):
            signal_group(pid, signal.SIGCONT)  # one that stands still cannot hear
        until = time.monotonic() + grace
        while group(pid) and time.monotonic() < until:
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
