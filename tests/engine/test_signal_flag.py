"""A flag that signal handlers set while the main thread uses it."""

from __future__ import annotations

import subprocess
import sys
import threading

from rung.engine.signal_flag import SignalFlag

STORM = """
import signal
from rung.engine.signal_flag import SignalFlag

def handle(*_):
    flag.set()

signal.signal(signal.SIGALRM, handle)
for round in range(3000):
    flag = SignalFlag()
    signal.setitimer(signal.ITIMER_REAL, 0.000001 * (1 + round % 100))
    while not flag.wait(0.00001):
        pass
    flag.set()
print("done")
"""


def test_handlers_may_set_it_at_any_time() -> None:
    """A handler that interrupts the flag's own methods does not block."""
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr


def test_all_waiting_threads_wake() -> None:
    """Setting the flag wakes every thread that waits for it, and later waits return at once."""
    flag, woken = SignalFlag(), []
    threads = [threading.Thread(target=lambda: woken.append(flag.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    flag.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 3
    assert flag.wait(60)


def test_a_wait_ends() -> None:
    """A wait without a signal ends after its seconds and says that the flag is not set."""
    flag = SignalFlag()
    assert not flag.wait(0.001)
    assert not flag.is_set()
