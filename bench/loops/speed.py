"""Steps a second on one core, the memory of a long session, and what a large result costs."""

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
    steps: float  # a second, of ordinary ones
    short: int  # bytes after a short session
    long: int  # bytes after a long one
    state: int  # bytes of its JSON
    small_result: float  # seconds for a result of 2 kB
    large_result: float  # seconds for one of 10 MB


def ordinary(count: int) -> list[Step]:
    """Steps as agents make them: reads, commands, edits, each about something else."""
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
    """Best of five: other work on the machine only ever slows it down."""
    steps = ordinary(STEPS)
    best = min(_seconds(steps) for _ in range(5))
    state, long = _memory(steps)
    return Speed(
        steps=len(steps) / best,
        short=_memory(steps[:500])[1],
        long=long,
        state=state,
        small_result=_one(2_000),
        large_result=_one(10_000_000),
    )


def _seconds(steps: list[Step]) -> float:
    watch = SessionMonitor()
    start = time.process_time()
    for step in steps:
        watch.check(step)
    return time.process_time() - start


def _one(size: int) -> float:
    texts = [letter * size for letter in "pqrst"]
    steps = [Step("read", {"path": f"a{number}"}, text) for number, text in enumerate(texts)]
    return min(_seconds(steps) for _ in range(20)) / len(steps)


def _memory(steps: list[Step]) -> tuple[int, int]:
    tracemalloc.start()
    watch = SessionMonitor()
    for step in steps:
        watch.check(Step(step.tool, dict(step.args), step.result.encode().decode(), step.error))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return len(json.dumps(watch.to_json())), held
