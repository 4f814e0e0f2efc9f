"""Guarded generators: begun again, unseen, as long as the caller has nothing of them yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rung.core.evidence import evidence_of
from rung.core.failures import Phase
from rung.engine.flat import as_attempt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from rung.engine.guard import Guard


class Stream:
    """A generator that has been begun: its next item, or that it is over."""

    over = False
    item: Any = None
    result: Any = None

    def __init__(self, source: Any) -> None:
        self.source = source

    def begin(self, given: int) -> Stream:
        """Up to the first item the caller does not have yet."""
        try:
            for _ in range(given + 1):
                self.item = next(self.source)
        except StopIteration as end:
            self.over, self.result = True, end.value
        return self

    async def abegin(self, given: int) -> Stream:
        """The same, awaiting."""
        try:
            for _ in range(given + 1):
                self.item = await anext(self.source)
        except StopAsyncIteration:
            self.over = True
        return self


def generator(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """The wrapper of a generator function."""

    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        given = 0
        failed: Exception | None = None
        while True:

            def begin(*a: Any, given: int = given, **k: Any) -> Stream:
                return Stream(function(*a, **k)).begin(given)

            stream = guard.carry(as_attempt(begin, args, kwargs), args, failed, guard.run.clock.now())
            try:
                while not stream.over:
                    sent = yield stream.item
                    given += 1
                    try:
                        stream.item = next(stream.source) if sent is None else stream.source.send(sent)
                    except StopIteration as end:
                        return end.value
                return stream.result
            except Exception as error:
                failed = _seen(error)
            finally:
                stream.source.close()

    return wrapper


def async_generator(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """The wrapper of an async generator function."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        given = 0
        failed: Exception | None = None
        while True:

            def begin(*a: Any, given: int = given, **k: Any) -> Any:
                return Stream(function(*a, **k)).abegin(given)

            stream = await guard.acarry(as_attempt(begin, args, kwargs), args, failed, guard.run.clock.now())
            try:
                while not stream.over:
                    sent = yield stream.item
                    given += 1
                    try:
                        stream.item = await (anext(stream.source) if sent is None else stream.source.asend(sent))
                    except StopAsyncIteration:
                        return
                return
            except Exception as error:
                failed = _seen(error)
            finally:
                await stream.source.aclose()

    return wrapper


def _seen(error: Exception) -> Exception:
    """The same error, as evidence that the caller already has a part of the output."""
    evidence = evidence_of(error)
    error.__dict__["__rung_evidence__"] = replace(evidence, phase=Phase.STREAM, output_started=True)
    return error
