"""Guarded generators: begun again unseen while the caller has nothing of them, and otherwise what they were."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.failures import Kind, Phase
from rung.testing import HttpError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

FAST = rung.policy("call", patience=0, backoff={"base": 0})


def alone(**ports: Any) -> dict[str, Any]:
    """Ports that share nothing with any other test."""
    return {"breakers": rung.BreakerRegistry(), "retry_budget": rung.RetryBudget(), **ports}


class Source:
    """Yields the items; each time it is begun it fails where the plan says, and at last not at all."""

    def __init__(self, *fails_at: int, items: int = 3, error: Callable[[], Exception] = ConnectionError) -> None:
        self.fails_at = fails_at
        self.items = items
        self.error = error
        self.begun = 0
        self.closed = 0

    def stream(self, *_: object) -> Generator[int, Any, str]:
        self.begun += 1
        place = self.fails_at[self.begun - 1] if self.begun <= len(self.fails_at) else -1
        try:
            for item in range(self.items):
                if item == place:
                    raise self.error()
                yield item
            if place == self.items:
                raise self.error()
        finally:
            self.closed += 1
        return "the end"

    async def astream(self, *args: object) -> AsyncGenerator[int, Any]:
        for item in self.stream(*args):
            await asyncio.sleep(0)
            yield item

    def collect(self, mode: str, policy: Any = FAST, *args: object, **ports: Any) -> list[int]:
        """All items of a guarded call, in this mode."""
        wrap = rung.guarded(policy, **{**alone(), **ports})
        if mode == "sync":
            return list(wrap(self.stream)(*args))

        async def main() -> list[int]:
            return [item async for item in wrap(self.astream)(*args)]

        return asyncio.run(main())


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_nothing_fails(mode: str) -> None:
    """A generator that does not fail gives its items, each once, and so does an empty one."""
    source = Source()
    assert source.collect(mode) == [0, 1, 2]
    assert (source.begun, source.closed) == (1, 1)
    assert Source(items=0).collect(mode) == []


def test_before_the_first_item(mode: str) -> None:
    """A generator that fails before its first item is begun again, and the caller does not see that."""
    source = Source(0, 0)
    assert source.collect(mode) == [0, 1, 2]
    assert (source.begun, source.closed) == (3, 3)


def test_before_the_first_item_for_ever(mode: str) -> None:
    """A generator that never gets to its first item raises its last error with the path, as a function does."""
    source = Source(*[0] * 9)
    with pytest.raises(ConnectionError) as caught:
        source.collect(mode)
    assert source.begun == 4
    assert "failed after 4 attempts" in caught.value.__notes__[0]


def test_after_an_item(mode: str) -> None:
    """A generator that fails after an item is not begun again: the error is raised, and says why."""
    source = Source(1)
    seen: list[int] = []
    with pytest.raises(ConnectionError) as caught:
        take(mode, source, seen)
    assert seen == [0]
    assert source.begun == 1
    outcome = caught.value.__dict__["__rung_outcome__"]
    assert outcome.failure.evidence.output_started
    assert outcome.failure.evidence.phase is Phase.STREAM
    assert outcome.failure.kind is Kind.NETWORK
    decided = [event.decision for event in outcome.events if isinstance(event, ev.Decided)]
    assert "a replay is not safe" in decided[-1].skipped[0][1]
    assert any("→ finish" in note for note in caught.value.__notes__)


def take(mode: str, source: Source, seen: list[int], **ports: Any) -> None:
    """Take items one by one, into a list that survives the error."""
    wrap = rung.guarded(FAST, **alone(), **ports)
    if mode == "sync":
        seen.extend(wrap(source.stream)())
        return

    async def main() -> None:
        async for item in wrap(source.astream)():
            seen.append(item)

    asyncio.run(main())


@pytest.mark.parametrize("fails_at", [(1,), (2, 2), (3,), (1, 2, 0, 3), (2, 1, 1), (0, 1, 0, 2)])
def test_idempotent(mode: str, fails_at: tuple[int, ...]) -> None:
    """A generator marked as idempotent is begun again and passed over: the caller sees each item once."""
    source = Source(*fails_at)
    seen: list[int] = []
    take(mode, source, seen, idempotent=True)
    assert seen == [0, 1, 2]
    assert source.begun == source.closed == len(fails_at) + 1


def test_idempotent_and_hopeless(mode: str) -> None:
    """One that always fails at the same place is raised in the end, with what the caller has."""
    source = Source(*[1] * 9)
    seen: list[int] = []
    with pytest.raises(ConnectionError) as caught:
        take(mode, source, seen, idempotent=True)
    assert seen == [0]
    assert source.begun == 4
    assert caught.value.__dict__["__rung_outcome__"].attempts == 4


def test_shorter_the_second_time(mode: str) -> None:
    """One that ends before what the caller already has simply ends."""
    source = Source(2)
    seen: list[int] = []

    def error() -> Exception:
        source.items = 1
        return ConnectionError()

    source.error = error
    take(mode, source, seen, idempotent=True)
    assert seen == [0, 1]
    assert source.begun == 2


def test_not_retryable(mode: str) -> None:
    """One whose error cannot be mended by repeating is raised at once, before or after its first item."""
    for place in (0, 1):
        source = Source(place, error=lambda: HttpError(401, "bad key"))
        with pytest.raises(HttpError) as caught:
            source.collect(mode, idempotent=True)
        assert source.begun == 1
        assert "Check the key" in caught.value.__notes__[-1]


def test_a_request(mode: str) -> None:
    """A generator whose first argument is a request is handed over to another model before its first item."""
    seen: list[str] = []

    class StreamingModel(Source):
        def stream(self, *args: object) -> Generator[int, Any, str]:
            (request,) = args
            assert isinstance(request, rung.Request)
            seen.append(request.model)
            if request.model == "small":
                raise HttpError(404, "model: small not found")
            return (yield from super().stream())

    policy = rung.policy("call", patience=0, backoff={"base": 0}, models=["small", "large"])
    assert StreamingModel().collect(mode, policy, rung.Request(prompt="x", model="small")) == [0, 1, 2]
    assert seen == ["small", "large"]


def test_its_time(mode: str) -> None:
    """The time up to the first item is limited as an attempt's is."""

    def stream() -> Generator[int, None, None]:
        time.sleep(9)
        yield 1

    async def astream() -> AsyncGenerator[int, None]:
        await asyncio.sleep(9)
        yield 1

    policy = rung.policy("call", attempt_seconds=0.05, retries=0)
    wrap = rung.guarded(policy, **alone())

    async def main() -> None:
        await anext(wrap(astream)())

    with pytest.raises(AttemptTimeout):
        next(wrap(stream)()) if mode == "sync" else asyncio.run(main())


# What passes through.


def echo() -> Generator[str, str | None, str]:
    """Yields what it is sent, and returns all of it."""
    heard: list[str] = []
    try:
        while True:
            try:
                sent = yield f"heard {len(heard)}"
            except KeyError as error:
                sent = f"caught {error}"
            if sent == "fail":
                raise ConnectionError("on demand")
            if sent is None:
                return " ".join(heard)
            heard.append(sent)
    finally:
        CLOSED.append("echo")


async def aecho() -> AsyncGenerator[str, str | None]:
    """The same, awaiting; what it would return it yields."""
    inner = echo()
    item = next(inner)
    try:
        while True:
            try:
                sent = yield item
            except KeyError as error:
                item = inner.throw(error)
            else:
                item = inner.send(sent)
    except StopIteration as end:
        yield end.value
    finally:
        inner.close()


CLOSED: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_closed() -> None:
    CLOSED.clear()


def test_what_is_sent() -> None:
    """What is sent reaches the generator, and what it returns comes back."""
    stream = rung.guarded(FAST, **alone())(echo)()
    assert next(stream) == "heard 0"
    assert stream.send("a") == "heard 1"
    assert stream.send("b") == "heard 2"
    with pytest.raises(StopIteration) as end:
        next(stream)
    assert end.value.value == "a b"
    assert CLOSED == ["echo"]


def test_what_is_sent_async() -> None:
    """The same for an async generator."""

    async def main() -> None:
        stream = rung.guarded(FAST, **alone())(aecho)()
        assert await anext(stream) == "heard 0"
        assert await stream.asend("a") == "heard 1"
        assert await stream.asend("b") == "heard 2"
        assert await anext(stream) == "a b"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(main())
    assert CLOSED == ["echo"]


def test_the_value_of_an_empty_one() -> None:
    """What a generator without items returns comes back as well."""

    def empty() -> Generator[int, None, str]:
        return "nothing"
        yield 1  # type: ignore[unreachable]

    def caller() -> Generator[int, None, None]:
        values.append((yield from rung.guarded(FAST, **alone())(empty)()))

    values: list[str] = []
    assert list(caller()) == []
    assert values == ["nothing"]


@pytest.mark.parametrize("idempotent", [False, True])
def test_what_is_thrown(idempotent: bool) -> None:
    """What the caller throws in reaches the generator, which may go on; unhandled it is no failure of its own."""
    stream = rung.guarded(FAST, idempotent=idempotent, **alone())(echo)()
    next(stream)
    assert stream.throw(KeyError("k")) == "heard 1"
    assert stream.send("b") == "heard 2"
    mine = ConnectionError("mine")
    with pytest.raises(ConnectionError) as caught:
        stream.throw(mine)
    assert caught.value is mine
    assert not hasattr(mine, "__notes__")
    assert CLOSED == ["echo"]


@pytest.mark.parametrize("idempotent", [False, True])
def test_what_is_thrown_async(idempotent: bool) -> None:
    """The same for an async generator."""

    async def main() -> None:
        stream = rung.guarded(FAST, idempotent=idempotent, **alone())(aecho)()
        await anext(stream)
        assert await stream.athrow(KeyError("k")) == "heard 1"
        mine = ConnectionError("mine")
        with pytest.raises(ConnectionError) as caught:
            await stream.athrow(mine)
        assert caught.value is mine
        assert not hasattr(mine, "__notes__")

    asyncio.run(main())
    assert CLOSED == ["echo"]


def test_failing_at_what_was_sent(mode: str) -> None:
    """One that fails at what it was sent has failed, with the path."""

    async def main() -> None:
        stream = rung.guarded(FAST, **alone())(aecho)()
        await anext(stream)
        await stream.asend("fail")

    def plain() -> None:
        stream = rung.guarded(FAST, **alone())(echo)()
        next(stream)
        stream.send("fail")

    with pytest.raises(ConnectionError, match="on demand") as caught:
        plain() if mode == "sync" else asyncio.run(main())
    assert "failed after 1 attempt in" in caught.value.__notes__[0]


def test_failing_at_what_was_thrown() -> None:
    """One that turns what was thrown in into an error of its own has failed by that."""

    @rung.guarded(FAST, **alone())
    def stream() -> Generator[int, None, None]:
        try:
            yield 1
        except KeyError as error:
            raise HttpError(400, "wrong") from error

    items = stream()
    next(items)
    with pytest.raises(HttpError, match="wrong") as caught:
        items.throw(KeyError("k"))
    assert caught.value.__notes__


def test_closing(mode: str) -> None:
    """Closing a guarded generator closes the one inside at once."""

    async def main() -> None:
        stream = rung.guarded(FAST, **alone())(aecho)()
        await anext(stream)
        await stream.aclose()
        assert CLOSED == ["echo"]

    if mode == "async":
        asyncio.run(main())
        return
    stream = rung.guarded(FAST, **alone())(echo)()
    next(stream)
    stream.close()
    assert CLOSED == ["echo"]


def test_what_is_no_error(mode: str) -> None:
    """Ctrl-C and its like pass a generator at once, and the one inside is closed."""

    class Leave(BaseException):
        pass

    source = Source(1, error=Leave)  # type: ignore[arg-type]  # no Exception, on purpose
    with pytest.raises(Leave):
        source.collect(mode, idempotent=True)
    assert (source.begun, source.closed) == (1, 1)


def test_as_a_context_manager(mode: str) -> None:
    """A guarded generator makes a context manager that is told of the error in its body."""
    told: list[BaseException] = []

    def resource() -> Generator[str, None, None]:
        try:
            yield "open"
        except KeyError as error:
            told.append(error)

    async def aresource() -> AsyncGenerator[str, None]:
        try:
            yield "open"
        except KeyError as error:
            told.append(error)

    wrap = rung.guarded(FAST, idempotent=True, **alone())
    error = KeyError("in the body")

    async def main() -> None:
        async with asynccontextmanager(wrap(aresource))() as value:
            assert value == "open"
            raise error

    if mode == "async":
        asyncio.run(main())
    else:
        with contextmanager(wrap(resource))() as value:
            assert value == "open"
            raise error
    assert told == [error]
