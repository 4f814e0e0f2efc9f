"""Running task as a DBOS workflow, and what DBOS stores of it.

Results are JSON, never pickles: whoever can write to the table must not be able to run code in the workers.

The errors of steps and tasks are values. An error of the database is neither: if a write fails in a way that DBOS does not
retry, DBOS would store that error as the result of the step or the run. Here such an error ends the execution without a
result, and the worker queues the run again, which replays what is recorded.
"""

from __future__ import annotations

import json
from queue import SimpleQueue
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, Serializer, error
from sqlalchemy import exc as sql

from rung.core.domain.errors import RungError
from rung.engine.durable.registered_task import step_result, value_of
from rung.engine.durable.task_recovery import attempt_in
from rung.engine.durable.task_steps import CURRENT_TASK

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.core.domain.request import Request

FOREVER_SECONDS: Final = 10 * 365 * 86_400.0
# A later write may succeed. The other errors of SQLAlchemy are those of the data or the schema, and last.
UNAVAILABLE: Final = (sql.OperationalError, sql.InterfaceError, sql.InternalError, sql.TimeoutError)
INTERRUPTED: Final[SimpleQueue[str]] = SimpleQueue()  # runs of this process that have to be queued again


class JsonSerializer(Serializer):
    """Stores arguments, results and errors as JSON. Of an error only its text is kept."""

    def serialize(self, data: Any) -> str:
        """Return the data as JSON. An error of the database is not data: it interrupts the run."""
        return json.dumps(data, default=_error_to_json)

    def deserialize(self, serialized_data: str) -> Any:
        """Return the data; a stored error becomes a RungError."""
        data = json.loads(serialized_data)
        return RungError(data["rung_error"]) if isinstance(data, dict) and data.keys() == {"rung_error"} else data

    def name(self) -> str:
        """Return the name that is stored with the data."""
        return "rung_json"


def _error_to_json(value: Any) -> dict[str, str]:
    task = CURRENT_TASK.get()
    if isinstance(value, UNAVAILABLE) and isinstance(task, DbosTask):
        raise task.interrupted() from value
    if isinstance(value, BaseException):
        return {"rung_error": f"{type(value).__name__}: {value}"}
    raise TypeError(f"a {type(value).__name__} is not JSON serializable")


class DbosTask:
    """Running task as a DBOS workflow. DBOS replays steps by their order and compares their names."""

    def __init__(self, run: str) -> None:
        self.id = run
        self._execution = token_hex(8)
        self._ended: dict[str, Any] = {}
        self._is_interrupted = False

    async def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Run a step, or return its recorded result."""
        if key not in self._ended:
            self._ended[key] = await self._stored(DBOS.run_step_async(_options(key), step_result, function, arguments))
        return value_of(self._ended[key])

    async def sleep(self, key: str, seconds: float) -> None:  # noqa: ARG002  # DBOS numbers its timers
        """Wait until the recorded time."""
        await self._stored(DBOS.sleep_async(seconds))

    async def wait(self, topic: str, timeout: float | None) -> Any:  # noqa: ASYNC109  # the timeout outlives the process
        """Return the message sent to a topic of this run, or None if the wait times out."""
        key = f"wait.{topic}"
        if key not in self._ended:
            wait = DBOS.recv_async(topic, FOREVER_SECONDS if timeout is None else timeout)
            self._ended[key] = await self._stored(wait)
        return self._ended[key]

    async def attempt(self, key: str, function: Callable[..., Any], request: Request, seconds: float | None) -> Any:
        """Make an attempt as a step, or return its recorded result."""
        return await attempt_in(self, self._execution, key, function, request, seconds)

    def interrupted(self) -> BaseException:
        """Have the run queued again, once. Return what to raise: DBOS then stores no result, and awaits that of the next execution."""
        if not self._is_interrupted:
            self._is_interrupted = True
            INTERRUPTED.put(self.id)
        return error.DBOSWorkflowConflictIDError(self.id)

    async def _stored(self, call: Awaitable[Any]) -> Any:
        """Await a call of DBOS. An error of the database is not the task's, which must not see it."""
        try:
            return await call
        except UNAVAILABLE as problem:
            raise self.interrupted() from problem


def _options(key: str) -> Any:
    return {"name": key, "retries_allowed": False, "preemptible": True}
