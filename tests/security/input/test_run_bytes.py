"""`rung run` passes bytes unchanged, starts before its input has ended, and keeps its memory bounded."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung", "run", "--no-journal"]
BINARY = bytes(range(256)) * 40
FAILS_ONCE = """
import pathlib, sys
data = sys.stdin.buffer.read()
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    mark.write_text("")
    sys.exit("no idea")
mark.write_bytes(data)
"""


def run(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RUNG, *words], input=given, capture_output=True, timeout=60, check=False)


def test_binary_input_and_output_pass_unchanged() -> None:
    """Bytes that are not UTF-8 reach the command, and its bytes reach our standard output."""
    done = run("--buffer", "--", "cat", given=BINARY)
    assert (done.returncode, done.stdout) == (0, BINARY)


@pytest.mark.parametrize("given", [BINARY, b"plain text\r\n", b"\xff" * 3_000_000])
def test_a_later_attempt_gets_the_same_bytes(tmp_path: Path, given: bytes) -> None:
    """The recovery prompt precedes the input, of which no byte is changed or missing, however long it is."""
    (tmp_path / "agent.py").write_text(FAILS_ONCE)
    done = run("--", sys.executable, str(tmp_path / "agent.py"), str(tmp_path / "mark"), given=given)
    assert done.returncode == 0, done.stderr
    got = (tmp_path / "mark").read_bytes()
    assert got.endswith(given)
    assert got.startswith(b"The previous attempt")


def test_the_command_starts_before_its_input_has_ended(tmp_path: Path) -> None:
    """What arrives is passed on as it arrives: the command answers the first line before there is a second."""
    process = subprocess.Popen(
        [*RUNG, "--stream", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for line in (b"first\n", b"\xff second\n"):
        process.stdin.write(line)
        assert process.stdout.readline() == line
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_an_input_that_never_ends_does_not_hold_the_command() -> None:
    """A command that reads nothing runs and ends, although nobody closes our standard input."""
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [*RUNG, "--", "echo", "fine"], stdin=reading, capture_output=True, timeout=60, check=False
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout) == (0, b"fine\n")


LIMITED = "import resource, sys; limit = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)); import runpy; sys.argv = sys.argv[2:]; runpy.run_module('rung', run_name='__main__')"


def test_a_flood_of_output_does_not_fill_the_memory() -> None:
    """100 MB of output pass through a process that may have 150 MB of memory."""
    words = ["rung", "run", "--no-journal", "--buffer", "--", "head", "-c", "100000000", "/dev/zero"]
    process = subprocess.Popen(
        [sys.executable, "-c", LIMITED, "150000000", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    size = 0
    while chunk := process.stdout.read(1 << 20):
        size += len(chunk)
    process.stdout.close()
    assert (process.wait(60), size) == (0, 100_000_000)


class Terminal:
    """A command on a terminal of its own, as its foreground process."""

    def __init__(self, *words: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execv(words[0], words)
        self.seen = b""

    def wait_for(self, text: bytes) -> None:
        while text not in self.seen:
            readable, _, _ = select.select([self.descriptor], [], [], 10)
            assert readable, self.seen
            self.seen += os.read(self.descriptor, 4_096)

    def end(self) -> int:
        wait_until(self._has_drained)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)

    def _has_drained(self) -> bool:
        try:
            chunk = os.read(self.descriptor, 4_096)
        except OSError:  # its last process has ended
            return True
        self.seen += chunk
        return not chunk


def test_on_a_terminal_the_command_has_the_terminal() -> None:
    """Its standard input and its controlling terminal are ours: it reads a line from each."""
    terminal = Terminal(*RUNG, "--", "sh", "-c", "test -t 0 && echo ready; read a; read b </dev/tty; echo got-$a-$b")
    terminal.wait_for(b"ready")
    os.write(terminal.descriptor, b"one\ntwo\n")
    terminal.wait_for(b"got-one-two")
    assert terminal.end() == 0


def test_ctrl_c_at_the_terminal_ends_the_run() -> None:
    """Ctrl-C goes to the command in the foreground; the run ends as interrupted and starts no other attempt."""
    terminal = Terminal(*RUNG, "--", "sh", "-c", "echo ready; sleep 600")
    terminal.wait_for(b"ready")
    os.write(terminal.descriptor, b"\x03")
    assert terminal.end() == 130
    assert terminal.seen.count(b"ready") == 1


def test_ctrl_z_stops_both_and_both_continue() -> None:
    """Ctrl-Z stops the command and then the run, so that the shell has the terminal; `fg` continues both."""
    run = shlex.join([*RUNG, "--", "sh", "-c", "echo ready; read a; echo got-$a"])
    terminal = Terminal("/bin/sh", "-c", f"set -m; {run}; echo shell-again; fg; echo over-$?")
    terminal.wait_for(b"ready")
    os.write(terminal.descriptor, b"\x1a")
    terminal.wait_for(b"shell-again")
    os.write(terminal.descriptor, b"one\n")
    terminal.wait_for(b"got-one")
    terminal.wait_for(b"over-0")
    terminal.end()
