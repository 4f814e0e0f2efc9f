"""Measure steps per second on one core, memory of a long session, and the cost of a large result."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from typing import NamedTuple

from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step

STEPS = 50_000


class Speed(NamedTuple):
    steps: float  # ordinary steps per second
    short: int  # bytes after a short session
    long: int  # bytes after a long one
    state: int  # bytes of the state as JSON
    small_result: float  # seconds for a result of 2 kB
    large_result: float  # seconds for one of 10 MB


def ordinary_steps(count: int) -> list[Step]:
    """Return typical steps of an agent: reads, commands, edits, all different."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(4_000)]
    return [
        Step(
            chance.choice(("bash", "read", "grep", "edit")),
            {"command": " ".join(chance.choices(words, k=6)), "path": f"src/{chance.choice(words)}.py"},
            " ".join(chance.choices(words, k=60)),
        )
        for _ in range(count)
    ]


def measure() -> Speed:
    """Return the best of five runs, which is the least disturbed by other processes."""
    steps = ordinary_steps(STEPS)
    best = min(_seconds(steps) for _ in range(5))
    state, long = _memory(steps)
    return Speed(
        steps=len(steps) / best,
        short=_memory(steps[:500])[1],
        long=long,
        state=state,
        small_result=_seconds_per_step(2_000),
        large_result=_seconds_per_step(10_000_000),
    )


def _seconds(steps: list[Step]) -> float:
    monitor = SessionMonitor()
    start = time.process_time()
    for step in steps:
        monitor.check(step)
    return time.process_time() - start


def _seconds_per_step(size: int) -> float:
    texts = [letter * size for letter in "pqrst"]
    steps = [Step("read", {"path": f"a{number}"}, text) for number, text in enumerate(texts)]
    return min(_seconds(steps) for _ in range(20)) / len(steps)


def _memory(steps: list[Step]) -> tuple[int, int]:
    tracemalloc.start()
    monitor = SessionMonitor()
    for step in steps:
        monitor.check(Step(step.tool, dict(step.args), step.result.encode().decode(), step.error))
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return len(json.dumps(monitor.to_json())), memory
