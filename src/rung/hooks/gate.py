"""The stop gate: an agent finishes with evidence, or is asked for it, at most so often; then it ends as partial."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from rung.core.errors import RungError
from rung.core.failures import Kind, Phase
from rung.core.ladder import Action
from rung.detectors.claims import unverified
from rung.detectors.finding import Finding
from rung.detectors.outputs import look_at
from rung.detectors.step import Step
from rung.detectors.watching import watching_from
from rung.hooks import spool, words
from rung.hooks.climbing import next_step, policy_for
from rung.hooks.dialects import Answer
from rung.wiring.stopping import claims_of, contract_of, judged

if TYPE_CHECKING:
    from typing import Any

    from rung.detectors.claims import Check
    from rung.hooks.dialects import Heard
    from rung.hooks.memory import Memory

BLOCKS = 2


def at_stop(heard: Heard, memory: Memory, now: float) -> Answer:
    """Let it finish, or send it back."""
    table = memory.table
    if table.get("ending") or "/" in heard.session or not table["stop"].get("gate", True):
        return Answer()
    finding = _missing(heard, table)
    if finding is None:
        table.pop("partial", None)
        return Answer()
    _note(memory, heard, now, finding)
    text = _may_block(heard, table, finding, now)
    if not text:
        table["partial"] = f"finished without evidence: {finding.text}"
        return Answer(notice=words.unproven(finding))
    spool.note(memory, heard, now, "decided", rung=0, action=Action.NUDGE.value, reason=finding.kind.value)
    table["blocks"] = table.get("blocks", 0) + 1
    table.setdefault("said", []).append(crc32(text.encode()))
    return Answer(block=text)


def _note(memory: Memory, heard: Heard, now: float, finding: Finding) -> None:
    facts = {"text": finding.text, "kind": finding.kind.value, "rule": finding.rule, "missing": list(finding.missing)}
    spool.note(memory, heard, now, "failed", tool="", **facts)


def _may_block(heard: Heard, table: dict[str, Any], finding: Finding, now: float) -> str:
    """The words to send it back with; empty when it goes."""
    blocks = table.get("blocks", 0)
    most = table["stop"].get("max_blocks", BLOCKS)
    if blocks >= most or (
        heard.active and not blocks
    ):  # the second: another's hook sent it back, and we do not add to it
        return ""
    decision = next_step(table, finding, policy_for(watching_from(table["loops"]), most), now)
    if getattr(decision, "action", None) is not Action.NUDGE:
        return ""
    text = words.unfinished(finding, blocks)
    return "" if crc32(text.encode()) in table.get("said", []) else text


def _missing(heard: Heard, table: dict[str, Any]) -> Finding | None:
    """What its last words leave unproven."""
    stop = table["stop"]
    command = stop.get("check")
    if command or stop.get("judge"):
        from rung.hooks.entry import limit

        limit(0)  # they have times of their own
    checks = claims_of(stop, heard.text, heard.cwd, table.get("began", 0.0))
    found = unverified(checks)
    if found is not None:
        return found
    if not heard.text.strip():
        return None  # not every agent says what its last words were
    proven = bool(command) or (table.get("acts", 0) > 0 and not table.get("failing"))
    found = look_at(heard.text, contract_of(stop, evidence=True), checks=checks if command else None, acted=proven)
    if found is not None and found.kind is Kind.UNVERIFIED and table.get("failing"):
        return Finding(
            rule="done-after-failure",
            kind=Kind.UNVERIFIED,
            text=f"it says that it is done, and the last call failed ({table['failing']})",
            phase=Phase.RESULT,
        )
    return found or _judged(heard, table, checks)


def _judged(heard: Heard, table: dict[str, Any], checks: list[Check]) -> Finding | None:
    """What the project's judge says of work that the free checks let pass; one that breaks lets it go."""
    steps = [Step(tool, args, result, error) for tool, args, result, error in table.get("recent", [])]
    try:
        return judged(table["stop"], table.get("prompt", ""), heard.text, steps, checks)
    except RungError as error:
        from rung.hooks.entry import crashed

        crashed(table["place"], "judge", error)
        return None
