"""Stop gate: an agent that finishes without evidence is asked for it, a limited number of times; then it ends as partial."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from rung.core.domain.errors import RungError
from rung.core.domain.failures import Kind, Phase
from rung.core.domain.ladder import Action
from rung.detectors.claims import unverified
from rung.detectors.finding import Finding
from rung.detectors.output import check_output
from rung.detectors.step import Step
from rung.hooks import messages, spool
from rung.hooks.agent_formats import HookResponse
from rung.hooks.crash_log import log_crash, set_time_limit
from rung.hooks.session_ladder import max_blocks, next_step
from rung.wiring.completion_checks import output_spec, run_judge, verify_claims

if TYPE_CHECKING:
    from typing import Any

    from rung.detectors.claims import ClaimCheck
    from rung.hooks.agent_formats import HookEvent
    from rung.hooks.session_state import SessionState


def check_stop(event: HookEvent, state: SessionState, now: float) -> HookResponse:
    """Let the agent finish, or block its stop with a request for evidence."""
    table = state.table
    if table.get("ending") or "/" in event.session or not table["stop"].get("gate", True):
        return HookResponse()
    finding = _find_gap(event, table)
    if finding is None:
        table.pop("partial", None)
        return HookResponse()
    spool.record_finding(state, event, now, finding)
    text = _block_message(event, table, finding, now)
    if not text:
        table["partial"] = f"finished without evidence: {finding.text}"
        return HookResponse(notice=messages.unproven(finding))
    spool.record_event(state, event, now, "decided", rung=0, action=Action.NUDGE.value, reason=finding.kind.value)
    table["blocks"] = table.get("blocks", 0) + 1
    table["sent_back"] = True
    table.setdefault("said", []).append(crc32(text.encode()))
    return HookResponse(block=text)


def _block_message(event: HookEvent, table: dict[str, Any], finding: Finding, now: float) -> str:
    """Return the message that blocks the stop; empty if the agent may finish."""
    blocks = table.get("blocks", 0)
    if blocks >= max_blocks(table) or (_continues_after_block(event, table) and not (blocks and _may_repeat(table))):
        return ""
    decision, _ = next_step(table, finding.evidence, now)
    if getattr(decision, "action", None) is not Action.NUDGE:
        return ""
    text = messages.unfinished(finding, blocks)
    return "" if crc32(text.encode()) in table.get("said", []) else text


def _continues_after_block(event: HookEvent, table: dict[str, Any]) -> bool:
    """Whether the agent works because its last stop was blocked, by this gate or by another hook.

    An agent that does not report it is asked by the turn: the last prompt of the user was answered with a block.
    """
    if "stop_hook_active" in event.payload:
        return event.stop_hook_active
    return bool(table.get("sent_back"))


def _may_repeat(table: dict[str, Any]) -> bool:
    """Whether the project asks for more than one block in a row; by default the second stop passes."""
    return "max_blocks" in table["stop"]


def _find_gap(event: HookEvent, table: dict[str, Any]) -> Finding | None:
    """Return what the agent's last message leaves unproven, or None."""
    stop = table["stop"]
    command = stop.get("check")
    if command or stop.get("judge"):
        set_time_limit(0)  # these commands have their own timeouts
    checks = verify_claims(stop, event.text, event.cwd, table.get("began", 0.0), table.get("root"))
    finding = unverified(checks)
    if finding is not None:
        return finding
    if not event.text.strip():
        return None  # not every agent reports its last message
    proven = bool(command) or (table.get("acts", 0) > 0 and not table.get("failing"))
    finding = check_output(
        event.text, output_spec(stop, evidence=True), checks=checks if command else None, acted=proven
    )
    if finding is not None and finding.kind is Kind.UNVERIFIED and table.get("failing"):
        return Finding(
            rule="done-after-failure",
            kind=Kind.UNVERIFIED,
            text=f"the agent claims to be done, but its last call failed ({table['failing']})",
            phase=Phase.RESULT,
        )
    return finding or _find_misconduct(event, table) or _run_judge(event, table, checks)


def _find_misconduct(event: HookEvent, table: dict[str, Any]) -> Finding | None:
    """Return a claim against the last test run, or an answer beside the task; an agent that acted may ask what is next."""
    from rung.detectors.behaviour.answers import ignored_task
    from rung.detectors.behaviour.evidence_claims import claim_against_tests

    if table["stop"].get("check"):
        return None  # the project's own check has passed, after the last test run
    finding = claim_against_tests(event.text, table.get("failing_tests", ""))
    if finding is not None or table.get("acts"):
        return finding
    return ignored_task(table.get("prompt", ""), event.text)


def _run_judge(event: HookEvent, table: dict[str, Any], checks: list[ClaimCheck]) -> Finding | None:
    """Run the project's judge on work that passed the other checks; a judge that fails lets it pass."""
    steps = [Step(tool, args, result, error) for tool, args, result, error in table.get("recent", [])]
    try:
        return run_judge(table["stop"], table.get("prompt", ""), event.text, steps, checks, table.get("root"))
    except RungError as error:
        log_crash(table["place"], "judge", error)
        return None
