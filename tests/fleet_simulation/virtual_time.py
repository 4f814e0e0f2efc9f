"""Virtual time: an event loop whose clock jumps to the next event, and processes in it that hang and die like real ones."""

from __future__ import annotations

import asyncio
import types
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextvars import Context

EPOCH = 1_790_000_000.0  # of the true time, which nobody in the simulation can read


class VirtualLoop(asyncio.BaseEventLoop):
    """Event loop without sockets and threads. What would run in a thread is a call over the network of the simulation."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self.send: Callable[[Process, Callable[[], Any]], asyncio.Future[Any]] | None = None
        self._selector = self  # BaseEventLoop waits by this name

    def time(self) -> float:
        """Return the seconds since the simulation began."""
        return self.elapsed

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for the next timer: let the time pass."""
        assert timeout is not None, "nothing will ever happen again"
        self.elapsed += timeout
        return []

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Create a task that may be left behind by a process that is killed."""
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # no other way to say so
        return task

    def _check_closed(self) -> None:
        """Do nothing: coroutines of killed processes are closed at any time."""

    def _process_events(self, events: list[Any]) -> None:
        del events

    def _write_to_self(self) -> None:
        """Do nothing: no other thread waits."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # any function
        """Send a call that a real process would make in a thread."""
        del executor
        assert self.send is not None
        return self.send(PROCESS.get(), lambda: func(*args))


class Clock:
    """Clock of a host: wrong by `skew` seconds, and by `drift` seconds in each second."""

    def __init__(self, loop: VirtualLoop, skew: float, drift: float) -> None:
        self._loop, self.skew, self.drift = loop, skew, drift
        self.frozen: float | None = None  # what a process read before its call was sent

    def __call__(self) -> float:
        """Return the time of the host."""
        return self.read() if self.frozen is None else self.frozen

    def read(self) -> float:
        """Return the time of the host now."""
        return EPOCH + self.skew + self._loop.time() * (1 + self.drift)


class Process:
    """Process of the fleet: tasks that run, hang and die together."""

    def __init__(self, loop: VirtualLoop, name: str, host: int, clock: Clock) -> None:
        self.name, self.host, self.clock = name, host, clock
        self.is_alive = True
        self.last_arrival = 0.0  # of a call: the connection keeps the order of calls
        self._loop = loop
        self._stopped: asyncio.Future[None] | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._parts: list[tuple[Context, Coroutine[Any, Any, Any]]] = []

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine as a part of this process."""
        context = copy_context()
        context.run(PROCESS.set, self)
        task = self._loop.create_task(_gated(self, coroutine), context=context)
        self._parts.append((context, coroutine))
        self._tasks.append(task)

    def kill(self) -> None:
        """End the process at once; none of its code runs again, but what it has sent is on its way."""
        self.is_alive = False

    def discard(self) -> None:
        """Close what is left of the process after the simulation, each part in its own context."""
        for context, coroutine in self._parts:
            with suppress(Exception):
                context.run(coroutine.close)

    def stop(self, seconds: float) -> None:
        """Hang for some seconds, as after SIGSTOP."""
        if self._stopped is None:
            self._stopped = self._loop.create_future()
            self._loop.call_later(seconds, self.wake)

    def wake(self) -> None:
        """Go on, as after SIGCONT."""
        if self._stopped is not None:
            stopped, self._stopped = self._stopped, None
            stopped.set_result(None)

    @property
    def obstacle(self) -> asyncio.Future[None] | None:
        """Return what keeps the process from running now."""
        return self._stopped if self.is_alive else self._loop.create_future()

    def failures(self) -> list[BaseException]:
        """Return the errors that ended tasks of this process: there must be none."""
        ended = [task for task in self._tasks if task.done() and not task.cancelled()]
        return [error for task in ended if (error := task.exception()) is not None]


PROCESS: ContextVar[Process] = ContextVar("process")


@types.coroutine
def _gated(process: Process, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a coroutine, but never while its process is stopped or dead."""
    error: BaseException | None = None
    try:
        while True:
            while (obstacle := process.obstacle) is not None:
                yield from obstacle
            waited = coroutine.send(None) if error is None else coroutine.throw(error)
            error = None
            try:
                yield waited
            except GeneratorExit:
                raise
            except BaseException as thrown:  # it belongs to the coroutine
                error = thrown
    except StopIteration as end:
        return end.value
