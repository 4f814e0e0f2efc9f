"""Input of a command that is complete before the command starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.filled_pipe import MAX_BYTES, filled_pipe
from rung.adapters.system.process import run_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("size", [0, 1, 70_000, MAX_BYTES])
def test_the_pipe_holds_everything(size: int) -> None:
    """What was written can be read to its end by somebody who comes later."""
    data = b"x" * size
    reader = filled_pipe(data)
    assert reader is not None
    with os.fdopen(reader, "rb") as file:
        assert file.read() == data


def test_more_than_fits_is_written_while_the_command_reads() -> None:
    """An input of several megabytes arrives whole."""
    assert filled_pipe(b"x" * (MAX_BYTES + 1)) is None
    assert run_command(["wc", "-c"], "x" * (3 * MAX_BYTES)).output.split() == [str(3 * MAX_BYTES)]


def test_a_command_whose_starter_is_killed_has_its_whole_input(tmp_path: Path) -> None:
    """The process that started the command is killed before the command reads: it reads everything."""
    heard = tmp_path / "heard"
    program = textwrap.dedent(f"""
        from rung.adapters.system.process import RunningProcess
        RunningProcess(["sh", "-c", "sleep 0.5; cat > {heard}.new; mv {heard}.new {heard}"], "x" * 200_000, own_group=False)
        print("started", flush=True)
        import time; time.sleep(60)
    """)
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "started\n"
    os.kill(starter.pid, signal.SIGKILL)
    starter.communicate()
    until = time.monotonic() + 60
    while not heard.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert heard.stat().st_size == 200_000
