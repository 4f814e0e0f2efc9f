"""Run the session's loop detectors over its pending steps, and format the message about a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.detectors.loop_settings import loop_settings_from
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step
from rung.hooks import spool

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.hooks.agent_formats import HookEvent
    from rung.hooks.session_state import SessionState


def check_pending_steps(event: HookEvent, state: SessionState, now: float) -> str:
    """Run the loop detectors over the pending steps; return the message for the agent, empty if nothing new was found."""
    table = state.table
    settings = loop_settings_from(table["loops"])
    saved = table.get("watch")
    monitor = SessionMonitor(settings) if saved is None else SessionMonitor.from_json(saved, settings)
    worst, of_tool = None, ""
    for tool, args, result, error in table.pop("pending", []):
        finding = monitor.check(Step(tool, args, result, error))
        if finding is not None and finding.is_new_stage and (worst is None or finding.repeats > worst.repeats):
            worst, of_tool = finding, tool
    table["watch"] = monitor.to_json()
    return _report_finding(worst, of_tool, event, state, now) if worst is not None else ""


def _report_finding(finding: Finding, tool: str, event: HookEvent, state: SessionState, now: float) -> str:
    from rung.core.domain.ladder import Action
    from rung.hooks import messages
    from rung.hooks.session_ladder import is_off, next_step

    table = state.table
    spool.record_finding(state, event, now, finding)
    if is_off(table, tool):
        return ""
    decision, rung = next_step(table, finding.evidence, now)
    action = getattr(decision, "action", Action.FORCE_DONE)
    spool.record_event(state, event, now, "decided", rung=decision.rung, action=action.value, reason=finding.kind.value)
    if action is Action.FORCE_DONE:
        table["ending"] = finding.text
        table["partial"] = f"stuck in a loop: {finding.text}"
    return messages.loop(rung, finding)
