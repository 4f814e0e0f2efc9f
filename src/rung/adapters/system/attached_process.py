"""A command that keeps our standard streams: it ends with this process, and no process of its group outlives it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from rung.adapters.system.child_processes import wait_for_exit
from rung.adapters.system.foreground import foreground, is_foreground, wait_in_foreground
from rung.adapters.system.process import STDIN, WAIT_SLICE_SECONDS, terminate_group
from rung.adapters.system.process_guardian import ProcessGuardian, deferred_signals

SIGNAL_CODES: Final = 128  # above it, a shell reports the signal that ended a command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run_attached(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code; negative is the signal that ended it.

    On a terminal it gets the foreground, and with it Ctrl-C and Ctrl-Z, as under a shell. A signal to this process that raises
    here terminates it with its child processes. Raises OSError if it cannot be started.
    """
    if os.name != "posix":
        return subprocess.run(command, env=dict(env), check=False).returncode  # noqa: S603  # the user's command
    with (
        ProcessGuardian() as guardian
    ):  # ends what an exception leaves behind, such as a second Ctrl-C at the wrong moment
        with deferred_signals():
            process = subprocess.Popen(command, env=dict(env), process_group=0)  # noqa: S603  # the user's command
            guardian.watch(process.pid)
        try:
            code = _wait(process)
        except BaseException:
            terminate_group(process)
            guardian.release()
            raise
        if code < 0 or code > SIGNAL_CODES:  # a signal has ended it: what it started is not left behind
            terminate_group(process)
        guardian.release()
        return code


def _wait(process: subprocess.Popen[bytes]) -> int:
    if is_foreground(STDIN):
        with foreground(process, STDIN):
            return wait_in_foreground(process, STDIN)
    while (code := wait_for_exit(process, WAIT_SLICE_SECONDS)) is None:
        continue
    return code
