"""Interrupts that Python loses in finalizers."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys, time
from rung.cli.lost_interrupts import deliver_lost_interrupts
from rung.cli.run.ending_signals import ending_signals, exit_code_of

class Interrupted:
    def __del__(self):
        signal.raise_signal({number})

deliver_lost_interrupts()
try:
    with ending_signals():
        Interrupted()
        print("went on", flush=True)
        time.sleep(60)
except KeyboardInterrupt as stop:
    sys.exit(exit_code_of(stop))
"""


@pytest.mark.parametrize(("number", "code"), [("signal.SIGINT", 130), ("signal.SIGTERM", 143)])
def test_a_lost_interrupt_is_delivered_again(number: str, code: int) -> None:
    """A signal whose exception a finalizer swallows still ends the command, without a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(number=number)], capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "went on\n", "")


def test_other_exceptions_are_shown_as_before() -> None:
    """An error in a finalizer is printed; it stops nothing."""
    code = (
        "from rung.cli.lost_interrupts import deliver_lost_interrupts\n"
        "class Broken:\n    def __del__(self):\n        raise ValueError('odd')\n"
        "deliver_lost_interrupts()\nBroken()\nprint('went on')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert "ValueError: odd" in done.stderr
