"""Tool calls that are recorded: after a crash, a tool call that has finished is not made again.

`@rung.durable.tool` on the function of a tool. In a durable task a call is a step of its own; in an attempt of
`rung.durable.recover` it is recorded with the attempt, and the attempt that is made again after a crash gets its result.
"""

from __future__ import annotations

import inspect
from collections import Counter
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from rung.core.domain.errors import ConfigError, RungError
from rung.core.domain.request import json_digest
from rung.engine.arguments import is_coroutine_function
from rung.engine.durable.attempt_replay import MISSING, DurableRecovery
from rung.engine.durable.task_steps import CURRENT_TASK
from rung.engine.loop.run import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
_counts: Final[WeakKeyDictionary[Any, Counter[str]]] = WeakKeyDictionary()  # calls so far, by task or attempt


class _Recorder(Protocol):
    """Where the result of a tool call is recorded."""

    def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return the recorded result, or call the function and record its result."""
        ...


def tool(function: F) -> F:
    """Record the calls of this function inside durable tasks and recoveries. Outside of them it is called as it is.

    Args:
        function: The tool. Arguments and results must be JSON serializable. A tool of an async task is a coroutine function.

    Example:
        >>> import rung
        >>> @rung.durable.tool
        ... def refund(order: str, cents: int) -> dict[str, int]:
        ...     return {order: cents}
        >>> refund("4711", 100)
        {'4711': 100}
    """
    if not callable(function):
        raise ConfigError("tool", function, "a function")
    name, signature = getattr(function, "__qualname__", repr(function)), inspect.signature(function)

    def recorder_and_call(
        arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[_Recorder | None, str, tuple[Any, ...]]:
        bound = signature.bind(*arguments, **named)
        if bound.kwargs:
            raise ConfigError(f"tool {name}", sorted(bound.kwargs), "arguments that can be given by position")
        recorder = _recorder()
        return recorder, "" if recorder is None else _key(recorder, name, bound.args), bound.args

    if is_coroutine_function(function):

        @wraps(function)
        async def acall_recorded(*arguments: Any, **named: Any) -> Any:
            recorder, key, values = recorder_and_call(arguments, named)
            return await (function(*values) if recorder is None else recorder.step(key, function, values))

        return cast("F", acall_recorded)

    @wraps(function)
    def call_recorded(*arguments: Any, **named: Any) -> Any:
        recorder, key, values = recorder_and_call(arguments, named)
        if recorder is None:
            return function(*values)
        result = recorder.step(key, function, values)
        if inspect.iscoroutine(result):
            result.close()
            raise RungError(
                f"tool {name} is a plain function in an async task or recovery: make it a coroutine function"
            )
        return result

    return cast("F", call_recorded)


def _recorder() -> _Recorder | None:
    """Return the attempt of a durable recovery that runs here, or the task; None outside of both."""
    run = CURRENT.get()
    while run is not None:
        if isinstance(run.attempt_recorder, DurableRecovery):
            return _AttemptTools.of(run.attempt_recorder)
        run = run.parent
    return CURRENT_TASK.get()


def _key(recorder: _Recorder, name: str, arguments: tuple[Any, ...]) -> str:
    """Return the key of a call: the tool, its arguments, and the number of equal calls before it."""
    call = f"tool.{name}.{json_digest(list(arguments))}"
    counts = _counts.setdefault(recorder, Counter())
    counts[call] += 1
    return f"{call}.{counts[call]}"


class _AttemptTools:
    """Tool calls of one attempt of a durable recovery."""

    def __init__(self, recovery: DurableRecovery, attempt: str) -> None:
        self._recovery, self._attempt = recovery, attempt
        self._attempts = (attempt, *recovery.interrupted_attempts())  # whose results count

    @classmethod
    def of(cls, recovery: DurableRecovery) -> _AttemptTools:
        """Return the one of the running attempt."""
        attempt = recovery.next_step_key()
        if recovery.attempt_tools is None or recovery.attempt_tools[0] != attempt:
            recovery.attempt_tools = (attempt, cls(recovery, attempt))
        tools: _AttemptTools = recovery.attempt_tools[1]
        return tools

    def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return the recorded result of a call, or make and record it."""
        return (self._astep if is_coroutine_function(function) else self._step)(key, function, arguments)

    def _recorded(self, key: str) -> Any:
        steps = self._recovery.recorded_steps
        return next((steps[f"{name}.{key}"] for name in self._attempts if f"{name}.{key}" in steps), MISSING)

    def _step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        recorded = self._recorded(key)
        if recorded is not MISSING:
            return recorded
        result = function(*arguments)
        self._recovery.lease.record(f"{self._attempt}.{key}", result)
        return result

    async def _astep(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        from asyncio import to_thread

        recorded = self._recorded(key)
        if recorded is not MISSING:
            return recorded
        result = await function(*arguments)
        await to_thread(partial(self._recovery.lease.record, f"{self._attempt}.{key}", result))
        return result
