"""Close look at pending steps: the session's loop detectors, and what the agent is told of a finding."""

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


def noticed(heard: HookEvent, memory: SessionState, now: float) -> str:
    """Run the loop detectors over the pending steps; the text for the agent, empty where nothing new was found."""
    table = memory.table
    watching = loop_settings_from(table["loops"])
    kept = table.get("watch")
    watch = SessionMonitor(watching) if kept is None else SessionMonitor.from_json(kept, watching)
    found: Finding | None = None
    for tool, args, result, error in table.pop("pending", []):
        finding = watch.check(Step(tool, args, result, error))
        if finding is not None and finding.is_new_stage and (found is None or finding.repeats > found.repeats):
            found = finding
    table["watch"] = watch.to_json()
    return _told(found, heard, memory, now) if found is not None else ""


def _told(finding: Finding, heard: HookEvent, memory: SessionState, now: float) -> str:
    from rung.core.domain.ladder import Action
    from rung.hooks import messages
    from rung.hooks.session_ladder import next_step

    table = memory.table
    decision, rung = next_step(table, finding.evidence, now)
    spool.note_finding(memory, heard, now, finding)
    action = getattr(decision, "action", Action.FORCE_DONE)
    spool.note(memory, heard, now, "decided", rung=decision.rung, action=action.value, reason=finding.kind.value)
    if action is Action.FORCE_DONE:
        table["ending"] = finding.text
        table["partial"] = f"it went in circles: {finding.text}"
    return messages.loop(rung, finding)
