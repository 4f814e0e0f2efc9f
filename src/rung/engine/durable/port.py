"""Port of a durable engine: runs registered tasks to their end, whatever happens to the processes that run them.

Three engines implement it: `embedded` (the journal itself), `dbos` and `temporal`. A task sees only `rung.durable.step`,
`sleep`, `wait` and `recover_in_task`, so the same task runs on each. The promise is the same, too: a finished step never
runs again, a step that was running may run twice, and a process that lost its run commits nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rung.core.domain.request import Request


class RunState(StrEnum):
    """State of a run. The last four are ends."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PARTIAL = "partial"
    CANCELLED = "cancelled"


ENDED: frozenset[RunState] = frozenset(RunState) - {RunState.QUEUED, RunState.RUNNING}


class RunInfo(NamedTuple):
    """A run in a listing. `executor` is the process that runs it, empty if there is none or the engine does not say."""

    id: str
    task: str
    state: RunState
    executor: str
    submitted_at: float  # UTC seconds


class DurableEngine(Protocol):
    """Durable engine."""

    name: str

    async def submit(self, run: str, task: str, arguments: Mapping[str, Any]) -> bool:
        """Start a task as a run with this id, on any worker. Return False, and change nothing, if the id exists."""
        ...

    async def result(self, run: str, seconds: float | None = None) -> Any:
        """Wait for the end of a run and return its value.

        Raise RunEnded if it did not succeed, RunNotFound if there is none, and TimeoutError after `seconds`.
        """
        ...

    async def cancel(self, run: str) -> bool:
        """End a run. Its worker is stopped at its next step at the latest. Return False if it had ended."""
        ...

    async def list_runs(
        self, *, states: Collection[RunState] = (), task: str = "", limit: int = 100
    ) -> Sequence[RunInfo]:
        """Return runs in these states (default: all) and of this task, the newest first."""
        ...

    async def send(self, run: str, topic: str, body: Any) -> None:
        """Send a message to a topic of a run, for `rung.durable.wait`."""
        ...

    async def work(self, stop: asyncio.Event, *, concurrency: int = 8) -> None:
        """Run submitted tasks in this process until `stop` is set; then finish those in hand and return."""
        ...

    async def close(self) -> None:
        """Free the connections of this process."""
        ...


class TaskContext(Protocol):
    """Running task, as the functions of `rung.durable` see it. In an async task the results are awaited."""

    @property
    def id(self) -> str:
        """Id of the run."""
        ...

    def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return the recorded result of a step, or run the step and record its result."""
        ...

    def sleep(self, key: str, seconds: float) -> Any:
        """Wait until the time that was recorded when this call was first reached."""
        ...

    def wait(self, topic: str, timeout: float | None) -> Any:
        """Return the message sent to a topic of this run, or None if the wait times out."""
        ...

    def attempt(self, key: str, function: Callable[..., Any], request: Request, seconds: float | None) -> Any:
        """Return what `attempt_step` returned for this attempt, which is made as a step within `seconds`."""
        ...
