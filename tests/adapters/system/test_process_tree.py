"""A command in the group of its starter is terminated with its descendants, and nobody else is."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.process import RunningProcess
from rung.adapters.system.process_tree import descendants, terminate_tree
from rung.engine.process_identity import is_alive

if TYPE_CHECKING:
    from rung.engine.process_identity import ProcessId

SECONDS = 30.0


def tree_of(number: int, size: int) -> set[ProcessId]:
    """Wait until a process has so many descendants, and return them."""
    until = time.monotonic() + SECONDS
    while len(found := descendants(number)) < size and time.monotonic() < until:
        time.sleep(0.01)
    assert len(found) == size
    return found


def test_the_descendants_of_a_command_end_with_it() -> None:
    """A pipeline of a shell does not go on after the shell, although no group is signalled."""
    with subprocess.Popen(["sleep", "60"]) as beside:
        run = RunningProcess(["sh", "-c", "sleep 60 | (sleep 60; cat); echo"], "", own_group=False)
        tree = tree_of(run.process.pid, 3)
        run.terminate()
        assert run.process.returncode is not None
        assert not any(map(is_alive, tree))
        assert beside.poll() is None
        beside.kill()


@pytest.mark.parametrize(
    "command", ["trap '' TERM; sleep 60 & wait; sleep 60", "(trap '' TERM; sleep 60; sleep 60); echo"]
)
def test_a_descendant_that_ignores_the_signal_is_killed(command: str) -> None:
    """SIGKILL follows after the grace period, for the command as for its descendants."""
    with subprocess.Popen(["sh", "-c", command]) as process:
        tree = tree_of(process.pid, 1 if command.startswith("trap") else 2)
        terminate_tree(process, grace=0.2)
        assert not any(map(is_alive, tree))
