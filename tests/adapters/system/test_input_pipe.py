"""Pipes that are written while a command runs: who has read them."""

from __future__ import annotations

import os
import threading

from rung.adapters.system.input_pipe import THREAD_NAME, InputPipe
from tests.waiting import wait_until


def written(*chunks: bytes) -> InputPipe:
    """Return a pipe into which all has been written."""
    pipe = InputPipe(chunks)
    wait_until(lambda: not is_writing())
    return pipe


def is_writing() -> bool:
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


def test_an_input_that_nobody_read() -> None:
    """An input that is still in the pipe was not read, however often that is asked."""
    pipe = written(b"fix it", b"", b"now")
    assert (pipe.close(), pipe.close()) == (True, True)


def test_an_input_that_was_read_in_part() -> None:
    """One byte read is an input that was read."""
    pipe = written(b"fix it")
    assert os.read(pipe.reader, 1) == b"f"
    assert not pipe.close()


def test_no_input() -> None:
    """Where nothing was given, nothing was left unread."""
    pipe = written()
    assert os.read(pipe.reader, 1) == b""
    assert not pipe.close()


def test_an_input_that_does_not_fit() -> None:
    """Of an input that the pipe cannot hold, it is not certain what was read; its writer ends with the pipe."""
    pipe = InputPipe([b"x" * 4_000_000])
    assert not pipe.close()
    wait_until(lambda: not is_writing())
