"""The guarded work, and hand-written retry loops around it."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import count
from types import FunctionType
from typing import Any, TypeAlias

Call: TypeAlias = Callable[..., Any]

VALUE = 1
ATTEMPTS = count()


class Mode(StrEnum):
    """Whether the work is called synchronously or awaited."""

    SYNC = "sync"
    ASYNC = "async"


class Scenario(StrEnum):
    """Behaviour of the work. FRESH is ONE_FAILURE with a different message each time."""

    SUCCESS = "success"
    ONE_FAILURE = "one-failure"
    FRESH = "fresh-failure"


def succeed() -> int:
    return VALUE


async def asucceed() -> int:
    return VALUE


def fail_once() -> int:
    if not next(ATTEMPTS) & 1:
        raise ConnectionResetError("x")
    return VALUE


async def afail_once() -> int:
    if not next(ATTEMPTS) & 1:
        raise ConnectionResetError("x")
    return VALUE


def fail_freshly() -> int:
    number = next(ATTEMPTS)
    if not number & 1:
        raise ConnectionResetError(f"x{number}")
    return VALUE


async def afail_freshly() -> int:
    number = next(ATTEMPTS)
    if not number & 1:
        raise ConnectionResetError(f"x{number}")
    return VALUE


WORKS: dict[tuple[Mode, Scenario], Call] = {
    (Mode.SYNC, Scenario.SUCCESS): succeed,
    (Mode.SYNC, Scenario.ONE_FAILURE): fail_once,
    (Mode.SYNC, Scenario.FRESH): fail_freshly,
    (Mode.ASYNC, Scenario.SUCCESS): asucceed,
    (Mode.ASYNC, Scenario.ONE_FAILURE): afail_once,
    (Mode.ASYNC, Scenario.FRESH): afail_freshly,
}


def copies(work: Call) -> Iterator[Call]:
    """Yield copies of the work under different names, for libraries that keep state per name."""
    for number in count():
        copy = FunctionType(work.__code__, work.__globals__)
        copy.__qualname__ = f"work_{number}"
        yield copy


def disable_sleep() -> None:
    """Make waiting free for everybody alike: even a wait of zero costs more than most of what is measured."""

    def no_sleep(_seconds: object) -> None:
        return None

    async def no_asleep(_delay: float, result: Any = None) -> Any:
        return result

    time.sleep = no_sleep
    asyncio.sleep = no_asleep  # type: ignore[assignment]  # overloaded in the stubs


def loop(work: Call) -> Call:
    """Return a hand-written retry loop."""

    def call() -> Any:
        for attempt in range(4):
            try:
                return work()
            except Exception:
                if attempt == 3:
                    raise
        return None

    return call


def aloop(work: Call) -> Call:
    """Return a hand-written retry loop for a coroutine function."""

    async def call() -> Any:
        for attempt in range(4):
            try:
                return await work()
            except Exception:
                if attempt == 3:
                    raise
        return None

    return call


def decorated(work: Call) -> Call:
    """Return a hand-written decorator that forwards arguments: the minimum cost of any library."""

    @functools.wraps(work)
    def call(*args: Any, **kwargs: Any) -> Any:
        for attempt in range(4):
            try:
                return work(*args, **kwargs)
            except Exception:
                if attempt == 3:
                    raise
        return None

    return call


def adecorated(work: Call) -> Call:
    """Return a hand-written decorator for a coroutine function."""

    @functools.wraps(work)
    async def call(*args: Any, **kwargs: Any) -> Any:
        for attempt in range(4):
            try:
                return await work(*args, **kwargs)
            except Exception:
                if attempt == 3:
                    raise
        return None

    return call
