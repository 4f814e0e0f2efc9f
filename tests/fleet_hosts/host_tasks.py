"""Task of the fleet's tests: a chain of steps, each of which writes down where and when it begins and ends."""

from __future__ import annotations

import os
import random
import socket
import time
from pathlib import Path
from typing import Final, NamedTuple

import rung

TASK: Final = "chain"
STEPS: Final = ("s0", "s1", "s2")
STEP_LOG: Final = "steps.log"
MIN_STEP_SECONDS: Final = 0.05
MAX_STEP_SECONDS: Final = 0.5


class LoggedStep(NamedTuple):
    """A line of the log: a step began or ended in a process of a host."""

    what: str
    run: str
    key: str
    host: str
    pid: int
    at: float


def work(folder: str, run: str, key: str) -> str:
    """Take some time, as a call of a model would."""
    _note(folder, "begin", run, key)
    seconds = random.Random(f"{run}/{key}").uniform(MIN_STEP_SECONDS, MAX_STEP_SECONDS)
    time.sleep(seconds)  # the work itself
    _note(folder, "end", run, key)
    return value_of(run, key)


def value_of(run: str, key: str) -> str:
    """Return the right value of a step."""
    return f"{run} {key} done"


def _note(folder: str, what: str, run: str, key: str) -> None:
    append(folder, STEP_LOG, f"{what} {run} {key} {socket.gethostname()} {os.getpid()} {time.time()}")


def append(folder: str, name: str, line: str) -> None:
    """Append a line to a log that processes of all hosts write, in one system call."""
    with Path(folder, name).open("ab", buffering=0) as log:
        log.write(f"{line}\n".encode())


def read_steps(folder: str) -> list[LoggedStep]:
    """Return what steps wrote."""
    lines = Path(folder, STEP_LOG).read_text().splitlines()
    rows = [line.split() for line in lines]
    return [LoggedStep(what, run, key, host, int(pid), float(at)) for what, run, key, host, pid, at in rows]


@rung.durable.task(TASK)
async def chain(folder: str, run: str) -> list[str]:
    """Steps, one after another."""
    return [await rung.durable.step(key, work, folder, run, key) for key in STEPS]
