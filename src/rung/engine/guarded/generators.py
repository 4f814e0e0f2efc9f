"""Guarded generators: begun again, unseen, as long as the caller has nothing of them yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from rung.engine.guarded.fast_path import as_attempt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from rung.engine.guarded.guard import GuardedFunction


class GuardedStream:
    """A generator that has been begun: its next item, or that it is over."""

    over = False
    item: Any = None
    result: Any = None
    thrown: Exception | None = None  # what the caller threw in

    def __init__(self, source: Any) -> None:
        self.source = source

    def begin(self, given: int) -> GuardedStream:
        """Up to the first item the caller does not have yet."""
        for _ in range(given + 1):
            self.go_on(None)
        return self

    def go_on(self, sent: Any) -> None:
        """To the next item, given what the caller sent or threw in."""
        try:
            if not self.over:
                self.item = self.source.send(sent) if self.thrown is None else self.source.throw(self.thrown)
                self.thrown = None
        except StopIteration as end:
            self.over, self.result = True, end.value

    async def abegin(self, given: int) -> GuardedStream:
        """The same, awaiting."""
        for _ in range(given + 1):
            await self.ago_on(None)
        return self

    async def ago_on(self, sent: Any) -> None:
        """The same, awaiting."""
        try:
            if not self.over:
                source = self.source
                self.item = await (source.asend(sent) if self.thrown is None else source.athrow(self.thrown))
                self.thrown = None
        except StopAsyncIteration:
            self.over = True


def generator(function: Callable[..., Any], guard: GuardedFunction) -> Callable[..., Any]:
    """The wrapper of a generator function."""

    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        given = 0
        failed: Exception | None = None
        while True:

            def begin(*a: Any, given: int = given, **k: Any) -> GuardedStream:
                return GuardedStream(function(*a, **k)).begin(given)

            try:
                stream = guard.carry(as_attempt(begin, args, kwargs), args, failed)
            finally:
                failed = None  # its traceback holds this frame: a cycle, and work for the collector
            try:
                while not stream.over:
                    sent = None
                    try:
                        sent = yield stream.item
                    except Exception as error:
                        stream.thrown = error
                    given += 1
                    stream.go_on(sent)
                return stream.result
            except Exception as error:
                if error is stream.thrown:
                    raise  # the caller's own, and no failure
                failed = _seen(error)
            finally:
                stream.thrown = None
                stream.source.close()

    return wrapper


def async_generator(function: Callable[..., Any], guard: GuardedFunction) -> Callable[..., Any]:
    """The wrapper of an async generator function."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        given = 0
        failed: Exception | None = None
        while True:

            def begin(*a: Any, given: int = given, **k: Any) -> Any:
                return GuardedStream(function(*a, **k)).abegin(given)

            try:
                stream = await guard.acarry(as_attempt(begin, args, kwargs), args, failed)
            finally:
                failed = None  # as above
            try:
                while not stream.over:
                    sent = None
                    try:
                        sent = yield stream.item
                    except Exception as error:
                        stream.thrown = error
                    given += 1
                    await stream.ago_on(sent)
                return
            except Exception as error:
                if error is stream.thrown:
                    raise  # as above
                failed = _seen(error)
            finally:
                stream.thrown = None
                await stream.source.aclose()

    return wrapper


def _seen(error: Exception) -> Exception:
    """The same error, as evidence that the caller already has a part of the output."""
    evidence = evidence_of(error)
    error.__dict__["__rung_evidence__"] = evidence._replace(phase=Phase.STREAM, output_started=True)
    return error
