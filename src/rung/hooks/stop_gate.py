"""The stop gate: an agent finishes with evidence, or is asked for it, at most so often; then it ends as partial."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from rung.core.domain.errors import RungError
from rung.core.domain.failures import Kind, Phase
from rung.core.domain.ladder import Action
from rung.detectors.claims import unverified
from rung.detectors.finding import Finding
from rung.detectors.output import look_at
from rung.detectors.step import Step
from rung.hooks import messages, spool
from rung.hooks.agent_formats import HookResponse
from rung.hooks.crash_log import crashed, limit
from rung.hooks.session_ladder import max_blocks, next_step
from rung.wiring.completion_checks import output_spec, run_judge, verify_claims

if TYPE_CHECKING:
    from typing import Any

    from rung.detectors.claims import ClaimCheck
    from rung.hooks.agent_formats import HookEvent
    from rung.hooks.session_state import SessionState


def at_stop(heard: HookEvent, memory: SessionState, now: float) -> HookResponse:
    """Let it finish, or send it back."""
    table = memory.table
    if table.get("ending") or "/" in heard.session or not table["stop"].get("gate", True):
        return HookResponse()
    finding = _missing(heard, table)
    if finding is None:
        table.pop("partial", None)
        return HookResponse()
    spool.note_finding(memory, heard, now, finding)
    text = _may_block(heard, table, finding, now)
    if not text:
        table["partial"] = f"finished without evidence: {finding.text}"
        return HookResponse(notice=messages.unproven(finding))
    spool.note(memory, heard, now, "decided", rung=0, action=Action.NUDGE.value, reason=finding.kind.value)
    table["blocks"] = table.get("blocks", 0) + 1
    table.setdefault("said", []).append(crc32(text.encode()))
    return HookResponse(block=text)


def _may_block(heard: HookEvent, table: dict[str, Any], finding: Finding, now: float) -> str:
    """The words to send it back with; empty when it goes."""
    blocks = table.get("blocks", 0)
    if blocks >= max_blocks(table) or (
        heard.active and not blocks
    ):  # the second: another's hook sent it back, and we do not add to it
        return ""
    decision, _ = next_step(table, finding.evidence, now)
    if getattr(decision, "action", None) is not Action.NUDGE:
        return ""
    text = messages.unfinished(finding, blocks)
    return "" if crc32(text.encode()) in table.get("said", []) else text


def _missing(heard: HookEvent, table: dict[str, Any]) -> Finding | None:
    """What its last words leave unproven."""
    stop = table["stop"]
    command = stop.get("check")
    if command or stop.get("judge"):
        limit(0)  # they have times of their own
    checks = verify_claims(stop, heard.text, heard.cwd, table.get("began", 0.0))
    found = unverified(checks)
    if found is not None:
        return found
    if not heard.text.strip():
        return None  # not every agent says what its last words were
    proven = bool(command) or (table.get("acts", 0) > 0 and not table.get("failing"))
    found = look_at(heard.text, output_spec(stop, evidence=True), checks=checks if command else None, acted=proven)
    if found is not None and found.kind is Kind.UNVERIFIED and table.get("failing"):
        return Finding(
            rule="done-after-failure",
            kind=Kind.UNVERIFIED,
            text=f"it says that it is done, and the last call failed ({table['failing']})",
            phase=Phase.RESULT,
        )
    return found or _judged(heard, table, checks)


def _judged(heard: HookEvent, table: dict[str, Any], checks: list[ClaimCheck]) -> Finding | None:
    """What the project's judge says of work that the free checks let pass; one that breaks lets it go."""
    steps = [Step(tool, args, result, error) for tool, args, result, error in table.get("recent", [])]
    try:
        return run_judge(table["stop"], table.get("prompt", ""), heard.text, steps, checks)
    except RungError as error:
        crashed(table["place"], "judge", error)
        return None
