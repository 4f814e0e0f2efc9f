"""Check the steps of a session against the prompt's constraints, and note failing test runs for the stop gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.detectors.behaviour.constraints import Constraint
from rung.detectors.behaviour.suite_runs import failing_tests
from rung.detectors.behaviour.violations import violation
from rung.detectors.step import Step
from rung.hooks import spool
from rung.hooks.agent_formats import HookResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.finding import Finding
    from rung.hooks.agent_formats import HookEvent
    from rung.hooks.session_state import SessionState


def check_steps(event: HookEvent, state: SessionState, now: float, steps: Sequence[Sequence[Any]]) -> HookResponse:
    """Return the message about the first violated constraint. Each constraint is reported once."""
    table = state.table
    done = [Step(*step) for step in steps]
    table["failing_tests"] = failing_tests(done, table.get("failing_tests", ""))
    constraints = [Constraint(*one) for one in table.get("constraints", ())]
    for step in done:
        finding = violation(step, constraints, table.get("root", ""))
        if finding is not None:
            broken = [one for one in constraints if one.sentence in finding.text]
            table["constraints"] = [list(one) for one in constraints if one not in broken]
            return _report(finding, event, state, now)
    return HookResponse()


def _report(finding: Finding, event: HookEvent, state: SessionState, now: float) -> HookResponse:
    """Record the finding; tell the agent while the ladder has nudges, afterwards only the user."""
    from rung.core.domain.ladder import Action
    from rung.hooks import messages
    from rung.hooks.session_ladder import is_off, next_step

    spool.record_finding(state, event, now, finding)
    if is_off(state.table, finding.tool):
        return HookResponse()
    decision, _ = next_step(state.table, finding.evidence, now)
    action = getattr(decision, "action", None)
    if action is not Action.NUDGE:
        return HookResponse(notice=messages.violated_notice(finding))
    reason = finding.kind.value
    spool.record_event(state, event, now, "decided", rung=decision.rung, action=action.value, reason=reason)
    return HookResponse(context=messages.violated(finding))
