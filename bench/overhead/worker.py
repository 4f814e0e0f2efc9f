"""Measure one subject in this process: time or memory of a guarded call."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from itertools import islice, repeat
from statistics import median
from time import process_time
from typing import Any

from bench.overhead.subjects import MEMORY, SETUPS, YARDSTICK, Decorator
from bench.overhead.work import ATTEMPTS, VALUE, WORKS, Call, Mode, Scenario, copies, disable_sleep

TURNS = 7
LOOP = 0.04
BARE_LOOP = 0.01
OBJECTS = 1000
WARM_CALLS = 300
PEAKS = 21


class Caller:
    """Calls one subject repeatedly, and counts the calls."""

    def __init__(self, call: Call, mode: Mode) -> None:
        self.call = call
        self.mode = mode
        self.calls = 0
        self.runner = asyncio.Runner()

    def seconds(self, calls: int) -> float:
        """Return the CPU seconds of `calls` calls."""
        self.calls += calls
        if self.mode is Mode.ASYNC:
            return self.runner.run(self._await_all(calls))
        call = self.call
        start = process_time()
        for _ in repeat(None, calls):
            call()
        return process_time() - start

    def value(self) -> Any:
        """Call the subject once."""
        self.calls += 1
        return self.runner.run(self.call()) if self.mode is Mode.ASYNC else self.call()

    def peak(self) -> int:
        """Return the peak bytes of one call, by tracemalloc."""
        return self.runner.run(self._await_peak()) if self.mode is Mode.ASYNC else self._peak()

    async def _await_all(self, calls: int) -> float:
        call = self.call
        start = process_time()
        for _ in repeat(None, calls):
            await call()
        return process_time() - start

    def _peak(self) -> int:
        call = self.call
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before

    async def _await_peak(self) -> int:
        call = self.call
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        await call()
        return tracemalloc.get_traced_memory()[1] - before


def measure(name: str, mode: str, scenario: str) -> dict[str, float]:
    """Return the figures of one subject."""
    if scenario == MEMORY:
        return memory_of(name, Mode(mode))
    return time_of(name, Mode(mode), Scenario(scenario))


def time_of(name: str, mode: Mode, scenario: Scenario) -> dict[str, float]:
    """Return the nanoseconds of one guarded call and of the bare loop, each the best of some turns."""
    disable_sleep()
    work = WORKS[mode, scenario]
    subject, bare = (Caller(SETUPS[each](mode, scenario)(work), mode) for each in (name, YARDSTICK))
    many, many_bare = _calls_for(subject, LOOP), _calls_for(bare, BARE_LOOP)
    turns = [(subject.seconds(many) / many, bare.seconds(many_bare) / many_bare) for _ in range(TURNS)]
    best, best_bare = (min(times) for times in zip(*turns, strict=True))
    # If a breaker had opened or a budget had been exhausted, there would be fewer than two attempts per call.
    made = 0 if scenario is Scenario.SUCCESS else 2 * (subject.calls + bare.calls)
    _expect(next(ATTEMPTS), made)
    return {"ns": best * 1e9, "bare": best_bare * 1e9}


def _calls_for(caller: Caller, wanted: float) -> int:
    """Return how many calls take `wanted` seconds, after checking that a call returns the right value."""
    _expect(caller.value(), VALUE)
    calls = 1
    while (seconds := caller.seconds(calls)) < wanted / 4:
        calls *= 2
    return max(1, round(calls * wanted / seconds))


def memory_of(name: str, mode: Mode) -> dict[str, float]:
    """Return the bytes of a policy, of a guarded function, and the peak of one successful call."""
    setup, works = SETUPS[name], copies(WORKS[mode, Scenario.SUCCESS])
    first = setup(mode, Scenario.SUCCESS)(next(works))
    policies: list[Any] = list(repeat(None, OBJECTS))
    guarded, functions = policies.copy(), list(islice(works, OBJECTS))
    tracemalloc.start()
    start = _traced()
    for index in range(OBJECTS):
        policies[index] = setup(mode, Scenario.SUCCESS)
    made = _traced()
    _wrap(policies, functions, guarded)
    wrapped = _traced()
    tracemalloc.stop()
    return {
        "policy": (made - start) / OBJECTS,
        "function": (wrapped - made) / OBJECTS,
        "peak": _peak_of(first, mode),
    }


def _wrap(policies: list[Decorator], functions: list[Call], guarded: list[Call]) -> None:
    for index in range(OBJECTS):
        guarded[index] = policies[index](functions[index])


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _peak_of(call: Call, mode: Mode) -> float:
    caller = Caller(call, mode)
    caller.seconds(WARM_CALLS)  # fills the caches
    gc.collect()
    tracemalloc.start()
    peak = median(caller.peak() for _ in range(PEAKS))
    tracemalloc.stop()
    return peak


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise RuntimeError(f"the subject returned {found!r} instead of {wanted!r}")
