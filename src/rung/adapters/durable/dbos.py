"""DBOS: recovery inside a workflow. One step per attempt, durable waits, and questions that a message answers.

For a plain step, pass `rung.is_retryable` to DBOS: `@DBOS.step(retries_allowed=True, should_retry=rung.is_retryable)`.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from dbos import DBOS

from rung.core.domain.errors import ConfigError, RungError
from rung.core.domain.event_codec import record_to_json
from rung.engine.arguments import check_attempt
from rung.engine.durable import workflow
from rung.engine.recover import DEFAULT_LADDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain import events as ev
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.ports.journal import EventLog
    from rung.engine.ports.recovery import Listener, ResultValidator, RungHandler

ANSWER_SECONDS: Final = 7 * 86_400.0


async def recover(
    attempt: Callable[[Request], Any],
    request: Request | str,
    *,
    policy: Policy | str = DEFAULT_LADDER,
    attended: bool = False,
    answer_seconds: float = ANSWER_SECONDS,
    name: str = "rung",
    check: ResultValidator | None = None,
    rung_handlers: Mapping[str, RungHandler] | None = None,
    journal: EventLog | None = None,
    listeners: Sequence[Listener] = (),
) -> Outcome[Any]:
    """Attempt a request and recover on the policy's ladder, inside an async `@DBOS.workflow()`.

    `attended`: a question is published as the event `NAME.ask.N`; the id of an option, sent to the topic of the same
    name within `answer_seconds`, answers it. `name` starts the names of the steps: a second recovery in the same
    workflow needs another. `check`, `rung_handlers` and `listeners` run again on a replay: they must be deterministic.
    Recoveries at the same time need a workflow each.
    """
    ports: Any = {"check": check, "rung_handlers": rung_handlers, "journal": journal, "listeners": listeners}
    check_attempt(attempt, blocking=False)
    request, policy = workflow.checked(request, policy, ports)
    if not answer_seconds > 0:
        raise ConfigError("answer_seconds", answer_seconds, "more than 0 seconds")
    if DBOS.workflow_id is None or DBOS.step_id is not None:
        raise RungError("called outside a DBOS workflow or inside a step: call it in a function with @DBOS.workflow()")
    running = _DBOSWorkflow(attempt, name, answer_seconds)
    running.time = await running.step("start", _now)
    return await workflow.recover(running, request, policy=policy, attended=attended, **ports)


class _DBOSWorkflow:
    """Running workflow of DBOS, which replays by position and name: the order of the calls is that of the recovery."""

    def __init__(self, attempt: Callable[[Request], Any], name: str, answer_seconds: float) -> None:
        self._attempt, self._name, self._answer_seconds = attempt, name, answer_seconds
        self.id = str(DBOS.workflow_id) if name == "rung" else f"{DBOS.workflow_id}/{name}"
        self.random = random.Random(self.id).random  # noqa: S311  # jitter, and the same on a replay
        self._execution = uuid4().hex  # another one on a replay
        self.time = 0.0

    def now(self) -> float:
        """Return the time that was recorded last."""
        return self.time

    async def step(self, key: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a step. DBOS does not retry it; a cancelled workflow interrupts it."""
        options: Any = {"name": f"{self._name}.{key}", "retries_allowed": False, "preemptible": True}
        return await DBOS.run_step_async(options, function, *arguments)

    async def attempt(self, key: str, request: Request, seconds: float | None) -> Mapping[str, Any]:
        """Make an attempt as a step that also records when it ended. What may not be repeated records its beginning."""
        began = self._execution if request.idempotent else await self.step(f"{key}.began", _recorded, self._execution)
        if began == self._execution:
            result: dict[str, Any] = await self.step(key, _attempted, self._attempt, request, seconds)
        else:
            result = await self.step(key, _died)
        self.time = result["ended_at"]
        return result

    async def sleep(self, key: str, seconds: float) -> None:  # noqa: ARG002  # DBOS names its sleeps
        """Wait by DBOS's durable sleep."""
        await DBOS.sleep_async(seconds)
        self.time += seconds

    async def ask(self, key: str, question: ev.Ask, seconds: float | None) -> str | None:
        """Publish the question as an event and wait for a message."""
        topic, asked = f"{self._name}.{key}", record_to_json(question)
        await DBOS.set_event_async(topic, asked)
        limit = self._answer_seconds if seconds is None else min(seconds, self._answer_seconds)
        answer: str | None = await DBOS.recv_async(topic, timeout_seconds=limit)
        self.time = await self.step(f"{key}.ended", _now)
        await DBOS.set_event_async(topic, {**asked, "answer": answer})
        return answer


async def _now() -> float:
    return time.time()


async def _recorded(value: str) -> str:
    return value


async def _died() -> dict[str, Any]:
    return {"died": True, "ended_at": time.time()}


async def _attempted(attempt: Callable[[Request], Any], request: Request, seconds: float | None) -> dict[str, Any]:
    result = await workflow.attempt_result(attempt, request, seconds=seconds)
    return {**result, "ended_at": time.time()}
