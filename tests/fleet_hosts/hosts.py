"""A host of the tests: a network address, a host name and processes of its own, which can die or freeze all at once."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.fleet_hosts.network import HOLD, ROOT, held, let_go

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fleet_hosts.network import NetworkNamespace

_UNSHARE: Final = ("unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child")


class Host:
    """A host. `boot` starts it without processes; each boot is a new one."""

    def __init__(self, name: str, namespace: NetworkNamespace, folder: str) -> None:
        self.name, self.namespace, self.folder = name, namespace, folder
        self.boots = 0
        self.init = 0
        self._holder: subprocess.Popen[bytes] | None = None
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def address(self) -> str:
        return self.namespace.address

    @property
    def is_up(self) -> bool:
        return self._holder is not None

    def boot(self) -> None:
        """Start the host."""
        with self.namespace.entered():
            self._holder = held(*_UNSHARE, "sh", "-c", f"hostname {self.name} && {HOLD}")
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text()
        self.init = int(children.split()[0])
        self.boots += 1

    def start(self, name: str, *command: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a process on the host. What it prints is in the file `HOST-BOOT-NAME.log`."""
        enter = ("nsenter", "--target", str(self.init), "--pid", "--uts", "--mount", "--net", f"--wd={ROOT}")
        with self.log(name).open("wb") as log:
            process = subprocess.Popen(
                [*enter, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=ROOT,
                start_new_session=True,
            )  # fmt: skip
        self._started[name] = process

    def has_ended(self, name: str) -> bool:
        """Return whether a process of the host has ended by itself."""
        return self._started[name].poll() is not None

    def log(self, name: str) -> Path:
        return Path(self.folder, f"{self.name}-{self.boots}-{name}.log")

    def die(self) -> None:
        """Kill all processes of the host at once. The kernel does it when the first one is killed."""
        holder, self._holder = self._holder, None
        if holder is not None:
            with suppress(ProcessLookupError):
                os.kill(self.init, signal.SIGKILL)
            let_go(holder)
        for process in self._started.values():
            process.send_signal(signal.SIGCONT)  # of a host that was frozen
            process.kill()
            process.wait()
        self._started.clear()

    def freeze(self) -> None:
        """Stop all processes of the host."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all processes of the host go on."""
        self._signal(signal.SIGCONT)
        for process in self._started.values():  # nsenter stops itself when its child stops
            process.send_signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def pids(self) -> list[int]:
        """Return the processes of the host, by their ids outside of it."""
        space = Path(f"/proc/{self.init}/ns/pid").readlink()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (place / "ns" / "pid").readlink() == space:
                    found.append(int(place.name))
        return found
