"""Temporal plugin that names the failures of activities: `Client.connect(address, plugins=[RungPlugin()])`.

Temporal's retry policy then repeats what may help, after the wait that a provider asks for, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from temporalio.exceptions import is_cancelled_exception
from temporalio.plugin import SimplePlugin
from temporalio.worker import ActivityInboundInterceptor, Interceptor
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from rung.adapters.durable.temporal.failed_activity import as_application_error, is_decision
from rung.engine.durable.step_reports import StepReports

if TYPE_CHECKING:
    from temporalio.worker import ExecuteActivityInput, WorkflowRunner


class RungPlugin(SimplePlugin):
    """Classifies what activities raise, and lets workflows import `rung`.

    An activity's error becomes `ApplicationError(type="rung.<kind>")`. It is not retried if repeating the call cannot help;
    errors that no rule recognizes are left to the retry policy. Cancellation, and an `ApplicationError` that the activity
    raised on purpose, pass unchanged.
    """

    def __init__(self) -> None:
        super().__init__("rung.RungPlugin", interceptors=[_RungInterceptor()], workflow_runner=_pass_rung_through)


class _RungInterceptor(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  # signature of the SDK
        return _ClassifyingActivities(super().intercept_activity(next))


class _ClassifyingActivities(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  # signature of the SDK
        reports = StepReports()
        try:
            with reports:
                return await super().execute_activity(input)
        except Exception as error:
            if is_cancelled_exception(error) or is_decision(error):
                raise
            raise as_application_error(error, reports.to_json()) from error


def _pass_rung_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    """Let workflows use the `rung` of their process: it has no state of a workflow, and loads slowly."""
    assert runner is not None  # noqa: S101  # the worker has one
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    return replace(runner, restrictions=runner.restrictions.with_passthrough_modules("rung"))
