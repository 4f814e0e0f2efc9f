"""Steps looked at closely: what the watch finds, and what the agent is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.detectors.step import Step
from rung.detectors.watch import Watch
from rung.detectors.watching import watching_from
from rung.hooks import spool

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.detectors.watching import Watching
    from rung.hooks.dialects import Heard
    from rung.hooks.memory import Memory


def noticed(heard: Heard, memory: Memory, now: float) -> str:
    """Fold what is pending into the session's watch; what the agent is told, where there is news."""
    table = memory.table
    watching = watching_from(table["loops"])
    kept = table.get("watch")
    watch = Watch(watching) if kept is None else Watch.from_json(kept, watching)
    found: Finding | None = None
    for tool, args, result, error in table.pop("pending", []):
        finding = watch.see(Step(tool, args, result, error))
        if finding is not None and finding.news and (found is None or finding.repeats > found.repeats):
            found = finding
    table["watch"] = watch.to_json()
    return _told(found, watching, heard, memory, now) if found is not None else ""


def _told(finding: Finding, watching: Watching, heard: Heard, memory: Memory, now: float) -> str:
    from rung.core.ladder import Action
    from rung.hooks import words
    from rung.hooks.climbing import RUNGS, next_step, policy_for

    table = memory.table
    decision = next_step(table, finding, policy_for(watching, table["stop"].get("max_blocks", 2)), now)
    facts: dict[str, Any] = {"tool": finding.tool, "text": finding.text, "kind": finding.kind.value}
    spool.note(memory, heard, now, "failed", rule=finding.rule, repeats=finding.repeats, **facts)
    action = getattr(decision, "action", Action.FORCE_DONE)
    spool.note(memory, heard, now, "decided", rung=decision.rung, action=action.value, reason=finding.kind.value)
    if action is Action.FORCE_DONE:
        table["ending"] = finding.text
        table["partial"] = f"it went in circles: {finding.text}"
    return words.loop(RUNGS[decision.rung], finding)
