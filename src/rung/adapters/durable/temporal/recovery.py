"""Recovery inside a workflow of Temporal: each attempt is an activity, each wait a timer, each answer a signal."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutType, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeoutError

from rung.adapters.durable.temporal.attempts import GRACE, HEARTBEAT_TIMEOUT, is_attempt_activity, sent_by_attempt
from rung.adapters.durable.temporal.failed_activity import failure_of
from rung.adapters.durable.temporal.questions import Questions
from rung.core.classify.classifier import classify
from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import record_to_json
from rung.engine.durable.workflow import recover as recover_in_workflow
from rung.engine.recover import DEFAULT_LADDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from temporalio.workflow import ActivityConfig

    from rung.core.domain import events as ev
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.ports.recovery import Listener, ResultValidator, RungHandler

LIMIT: Final = timedelta(hours=1)  # of an attempt, unless the policy or the caller sets one
_ONCE: Final = RetryPolicy(maximum_attempts=1)


async def recover(
    activity: Callable[..., Any] | str,
    request: Request | str,
    *,
    policy: Policy | str = DEFAULT_LADDER,
    name: str = "",
    attended: bool = False,
    check: ResultValidator | None = None,
    rung_handlers: Mapping[str, RungHandler] | None = None,
    listeners: Sequence[Listener] = (),
    **options: Unpack[ActivityConfig],
) -> Outcome[Any]:
    """Attempt a request by an activity and recover on the policy's ladder, inside a workflow.

    `activity` is one of `attempt_activity`, or one that takes the request as a dict; `options` are those of
    `workflow.execute_activity`. `name` tells several recoveries of one workflow apart. `attended`: wait for answers.
    `check`, `rung_handlers` and `listeners` run in the workflow and must be deterministic.
    """
    for option in ("retry_policy", "activity_id", "summary"):
        if option in options:
            raise ConfigError(option, options[option], "absent: `recover` makes each attempt once, and names it")
    if attended:
        Questions.of_workflow()
    return await recover_in_workflow(
        _TemporalWorkflow(activity, name, options),
        request,
        policy=policy,
        attended=attended,
        check=check,
        rung_handlers=rung_handlers,
        listeners=listeners,
    )


class _TemporalWorkflow:
    """The running workflow, as the engine uses it. All time and chance are Temporal's."""

    def __init__(self, activity: Callable[..., Any] | str, name: str, options: ActivityConfig) -> None:
        self.activity, self.options = activity, options
        self.id = "/".join(filter(None, (workflow.info().workflow_id, name)))
        self._grace = GRACE if is_attempt_activity(activity) else timedelta()
        if self._grace:
            options.setdefault("heartbeat_timeout", HEARTBEAT_TIMEOUT)

    def now(self) -> float:
        return workflow.now().timestamp()

    def random(self) -> float:
        return workflow.random().random()

    async def sleep(self, key: str, seconds: float) -> None:
        await workflow.sleep(seconds, summary=f"{self.id} {key}")

    async def attempt(self, key: str, request: Request, seconds: float | None) -> Mapping[str, Any]:
        limit = self.options.get("start_to_close_timeout") or LIMIT
        limit = limit if seconds is None else min(limit, timedelta(seconds=seconds))
        options: Any = {**self.options, "start_to_close_timeout": limit + self._grace, "summary": f"{self.id} {key}"}
        try:
            given = record_to_json(request)
            result = await workflow.execute_activity(self.activity, given, retry_policy=_ONCE, **options)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return self._failed(error.cause or error)
        sent = sent_by_attempt(result)
        return {"value": result} if sent is None else sent

    def _failed(self, error: BaseException) -> Mapping[str, Any]:
        """Return the result of an attempt whose activity failed. One that was lost may have had side effects."""
        reported: dict[str, Any] = {}
        if isinstance(error, TemporalTimeoutError):
            reported = dict(sent_by_attempt(next(iter(error.last_heartbeat_details), None)) or {})
            if error.type is TimeoutType.HEARTBEAT:
                return {**reported, "died": True}
            reported["side_effects"] = error.type is not TimeoutType.SCHEDULE_TO_START
        failure = failure_of(error) or classify(error, self.now())
        return {**reported, "failure": record_to_json(failure)}

    async def ask(self, key: str, question: ev.Ask, seconds: float | None) -> str | None:
        return await Questions.of_workflow().ask(f"{self.id}/{key}", question, seconds)
