"""A command that keeps our standard streams ends with us, whenever an impatient user presses Ctrl-C again."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("unmeasured_processes")
# Runs a command, interrupts it, and interrupts again at the n-th traced line of its end; for every n until there is none.
SECOND_INTERRUPTS = """
import os, signal, sys, threading
from rung.adapters.system import attached_process, process
from rung.engine.process_identity import group_members

TRACED = {attached_process.__file__, process.__file__}
signal.signal(signal.SIGINT, signal.default_int_handler)

class Popen(attached_process.subprocess.Popen):
    def __init__(self, *words, **places):
        super().__init__(*words, **places)
        started.append(self.pid)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

attached_process.subprocess = type("subprocess", (), {"Popen": Popen})

def trace(frame, event, argument):
    global lines
    if frame.f_code.co_filename not in TRACED:
        return None
    if event == "exception" and lines is None:
        lines = 0
    elif event == "line" and lines is not None:
        lines += 1
        if lines == strikes_at:
            raise KeyboardInterrupt
    return trace

strikes_at = 0
while True:
    strikes_at, lines, started = strikes_at + 1, None, []
    sys.settrace(trace)
    try:
        attached_process.run_attached(["sleep", "600"], os.environ)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    if group_members(started[0]):
        os.killpg(started[0], signal.SIGKILL)
        sys.exit(f"an interrupt at line event {strikes_at} left the command behind")
    if lines < strikes_at:
        break
print(strikes_at)
"""


def test_second_interrupt_leaves_nothing_behind() -> None:
    """A second Ctrl-C at any line of the end leaves no process of the command."""
    ran = subprocess.run(
        [sys.executable, "-c", SECOND_INTERRUPTS], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 5  # lines between the first interrupt and the end
