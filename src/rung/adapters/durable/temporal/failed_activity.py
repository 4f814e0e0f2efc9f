"""Errors of activities as `ApplicationError` of Temporal, and back.

The last detail of the error is `{"rung": {"failure": …, "outcome": …}}`: the failure, and what schema `outcome` says
about the activity. Its attempts are those that Temporal made so far, its seconds count from the first schedule, its steps
and dollars are those that the last attempt reported, and its incident is `workflow id/activity id`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from rung.core.domain.event_codec import record_from_json
from rung.core.domain.events import Status
from rung.core.domain.failures import Failure, Kind
from rung.core.domain.outcome import Outcome
from rung.core.domain.recommendation import recommendation
from rung.engine.durable.raised_as import delay_of
from rung.engine.durable.workflow import failure_to_json
from rung.engine.ports.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping

DETAIL: Final = "rung"
_MAX_CAUSES: Final = 16


def is_decision(error: BaseException) -> bool:
    """Return whether an activity raised this `ApplicationError` on purpose: it has no cause, or a type of its own.

    A plugin that wraps an error of a provider sets no type, or the name of the error's class.
    """
    if not isinstance(error, ApplicationError):
        return False
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return cause is None or (
        error.type is not None and error.type not in {base.__name__ for base in type(cause).__mro__}
    )


def as_application_error(error: Exception, reports: Mapping[str, Any]) -> ApplicationError:
    """Return the error of a failed activity, classified. What a plugin that wrapped it decided stays."""
    encoded = failure_to_json(error)
    encoded["evidence"]["stack"] = ""  # Temporal has the stack traces, and its server cuts a large failure
    failure = record_from_json(Failure, encoded)
    wrapper = error if isinstance(error, ApplicationError) else None
    repeats = not _is_final(error) and (failure.retryable or failure.kind is Kind.UNKNOWN)
    delay = None if wrapper is None else wrapper.next_retry_delay
    return ApplicationError(
        failure.message,
        *(() if wrapper is None else wrapper.details),
        {DETAIL: {"failure": encoded, "outcome": _outcome(failure, reports).to_dict()}},
        type=f"rung.{failure.kind}",
        non_retryable=not repeats,
        next_retry_delay=(delay or delay_of(failure)) if repeats else None,
        **({} if wrapper is None else {"category": wrapper.category}),
    )


def failure_of(error: BaseException | None) -> Failure | None:
    """Return the failure that `RungPlugin` attached to an activity's error, or to one of its causes."""
    for _ in range(_MAX_CAUSES):
        if isinstance(error, ApplicationError) and error.details and isinstance(error.details[-1], dict):
            attached = error.details[-1].get(DETAIL)
            if isinstance(attached, dict) and "failure" in attached:
                return record_from_json(Failure, attached["failure"])
        if error is None:
            break
        error = error.__cause__
    return None


def _is_final(error: Exception) -> bool:
    """Return whether the wrapper of the error, or the activity's retry policy, forbids retries. It names types by class."""
    name: str | None = None
    if isinstance(error, ApplicationError):
        if error.non_retryable:
            return True
        name = error.type
    policy = activity.info().retry_policy
    return policy is not None and (name or type(error).__name__) in (policy.non_retryable_error_types or ())


def _outcome(failure: Failure, reports: Mapping[str, Any]) -> Outcome[None]:
    info = activity.info()
    return Outcome(
        status=Status.FAILED,
        value=None,
        reason=failure.headline(),
        recommendation=recommendation(failure),
        failure=failure,
        attempts=info.attempt,
        seconds=max(0.0, SYSTEM_CLOCK.now() - info.scheduled_time.timestamp()),
        dollars=reports.get("dollars", 0.0),
        path=(),
        steps=tuple(reports.get("steps", ())),
        failed_at=info.activity_type,
        model="",
        ladder="",
        id=f"{info.workflow_id or ''}/{info.activity_id}",
        events=(),
    )
