"""Guarded generators: restarted transparently as long as the caller has received no item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Phase
from rung.engine.guarded.fast_path import as_attempt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from rung.engine.guarded.followed_policy import FollowedPolicy
    from rung.engine.guarded.guard import GuardedFunction


class GuardedStream:
    """Started generator with its next item."""

    exhausted = False
    item: Any = None
    result: Any = None
    thrown: Exception | None = None  # exception thrown into the generator by the caller

    def __init__(self, source: Any) -> None:
        self.source = source

    def skip(self, delivered: int) -> GuardedStream:
        """Advance past the items that the caller already has."""
        for _ in range(delivered + 1):
            self.advance(None)
        return self

    def advance(self, sent: Any) -> None:
        """Advance to the next item, with the value sent or the exception thrown by the caller."""
        try:
            if not self.exhausted:
                self.item = self.source.send(sent) if self.thrown is None else self.source.throw(self.thrown)
                self.thrown = None
        except StopIteration as end:
            self.exhausted, self.result = True, end.value

    async def askip(self, delivered: int) -> GuardedStream:
        """Advance past the items that the caller already has, awaiting."""
        for _ in range(delivered + 1):
            await self.aadvance(None)
        return self

    async def aadvance(self, sent: Any) -> None:
        """Advance to the next item, awaiting."""
        try:
            if not self.exhausted:
                source = self.source
                self.item = await (source.asend(sent) if self.thrown is None else source.athrow(self.thrown))
                self.thrown = None
        except StopAsyncIteration:
            self.exhausted = True


def wrap_generator(function: Callable[..., Any], guard: GuardedFunction | FollowedPolicy) -> Callable[..., Any]:
    """Wrap a generator function."""

    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        delivered = 0
        failed: Exception | None = None
        while True:

            def restart(*a: Any, delivered: int = delivered, **k: Any) -> GuardedStream:
                return GuardedStream(function(*a, **k)).skip(delivered)

            try:
                stream = guard.recover_call(as_attempt(restart, args, kwargs), args, failed)
            finally:
                failed = None  # its traceback references this frame: a reference cycle
            try:
                while not stream.exhausted:
                    sent = None
                    try:
                        sent = yield stream.item
                    except Exception as error:
                        stream.thrown = error
                    delivered += 1
                    stream.advance(sent)
                return stream.result
            except Exception as error:
                if error is stream.thrown:
                    raise  # thrown in by the caller: not a failure
                failed = _mark_output_started(error)
            finally:
                stream.thrown = None
                stream.source.close()

    return wrapper


def wrap_async_generator(function: Callable[..., Any], guard: GuardedFunction | FollowedPolicy) -> Callable[..., Any]:
    """Wrap an async generator function."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        delivered = 0
        failed: Exception | None = None
        while True:

            def restart(*a: Any, delivered: int = delivered, **k: Any) -> Any:
                return GuardedStream(function(*a, **k)).askip(delivered)

            try:
                stream = await guard.arecover_call(as_attempt(restart, args, kwargs), args, failed)
            finally:
                failed = None  # its traceback references this frame: a reference cycle
            try:
                while not stream.exhausted:
                    sent = None
                    try:
                        sent = yield stream.item
                    except Exception as error:
                        stream.thrown = error
                    delivered += 1
                    await stream.aadvance(sent)
                return
            except Exception as error:
                if error is stream.thrown:
                    raise  # thrown in by the caller: not a failure
                failed = _mark_output_started(error)
            finally:
                stream.thrown = None
                await stream.source.aclose()

    return wrapper


def _mark_output_started(error: Exception) -> Exception:
    """Mark an error as raised after the caller received part of the output."""
    from rung.core.classify.evidence import evidence_of

    evidence = evidence_of(error)
    marked = evidence._replace(phase=Phase.STREAM, output_started=True)
    try:
        error.__dict__["__rung_evidence__"] = marked
    except Exception:  # a third-party class may refuse; its text is in the evidence
        return AttemptError.of(marked)
    return error
