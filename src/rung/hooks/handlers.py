"""One event of an agent's session: taken in, and answered."""

from __future__ import annotations

import os
import time
from zlib import crc32

from rung.detectors.loops.prefilter import outcome_checksum
from rung.hooks import fast_json, spool
from rung.hooks.agent_formats import EVENTS, HookEvent, HookResponse, written
from rung.hooks.crash_log import crashed, unseen
from rung.hooks.session_state import SessionState, prune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

PENDING: Final = 40  # steps that are looked at closely together, when nothing was suspicious before
COUNTS: Final = 500
FAILED: Final = 50
RECENT: Final = 15  # steps that a judge is shown
_HEAD: Final = 1_500
_TAIL: Final = 500
_PROMPT: Final = 2_000


def answered(agent: str, place: str, told: bytes, journal: str | None = None) -> tuple[bytes, bool, bool]:
    """The answer to an event, as JSON; whether there is something for the journal; and whether more will be asked soon."""
    if agent not in EVENTS:
        raise ValueError(f"agent {agent!r}: allowed are {', '.join(EVENTS)}")
    table = fast_json.loads(told)
    heard = HookEvent(agent, table)
    if not heard.name or not heard.session:
        return b"{}", False, False
    with SessionState(place, agent, heard.session) as memory:
        memory.table["place"], memory.table["cwd"] = place, heard.cwd
        memory.table["journal"] = os.environ.get("RUNG_JOURNAL", "") if journal is None else journal
        _settings(memory.table, heard.cwd)
        answer, changed = ACTS[heard.name](heard, memory, time.time())
        near = memory.table.pop("near", False)
        wake = spool.write(place, memory)
        if changed or wake:  # before it is said: what cannot be remembered is not done
            memory.keep()
    wake = wake and heard.name in ("after", "stop", "end", "broke")
    return fast_json.dumps(written(heard, answer)).encode(), wake, near


def _settings(table: dict[str, Any], cwd: str) -> None:
    """What the project's file says of loops and stops; read once a session."""
    if "stop" in table:
        return
    table["loops"], table["stop"] = {}, {}
    path = os.path.join(cwd, "rung.toml")  # noqa: PTH118
    if os.path.exists(path):  # noqa: PTH110
        from rung.core.policy.stop_settings import stop_from
        from rung.detectors.loop_settings import loop_settings_from
        from rung.wiring.files import read_table

        try:
            read = read_table(path)
            loops, stop = read.get("loops", {}), stop_from(read.get("stop", {}))
            loop_settings_from(loops)
            table["loops"], table["stop"] = loops, stop
        except Exception as error:  # noqa: BLE001  # a file that cannot be used is said once, and the defaults hold
            crashed(table["place"], "rung.toml", error)


def _start(_: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    prune(memory.table["place"], now)
    return HookResponse(notice=unseen(memory.table["place"])), True


def _prompt(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    """A person spoke: every streak ends. How often its stop was blocked does not: that is for the whole session."""
    table = memory.table
    for name in ("ending", "denied", "watch", "pending", "counts", "last", "history", "failing", "partial", "recent"):
        table.pop(name, None)
    table["acts"] = 0
    table["prompt"] = heard.text[:_PROMPT]
    table["asked"] = now
    table["near"] = True  # its end at the latest will be looked at closely
    return HookResponse(), True


def _before(_: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    fact = memory.table.get("ending")
    if not fact:
        return HookResponse(), False
    from rung.hooks import messages
    from rung.hooks.session_ladder import must_stop

    denied = memory.table["denied"] = memory.table.get("denied", 0) + 1
    stop = messages.stopped(fact) if must_stop(memory.table, now) else ""
    return HookResponse(deny=messages.denied(fact, denied), stop=stop), True


def _failed(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    """A call failed; the batch it was in comes after it."""
    for tool, _, _, _, call in heard.steps:
        known = memory.table.setdefault("failed", {})
        if len(known) >= FAILED:
            known.clear()
        known[call] = heard.text[:_HEAD] or True
        spool.note(memory, heard, now, "failed", tool=tool, text=heard.text[: spool.TEXT])
    return HookResponse(), True


def _after(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    table = memory.table
    if table.get("ending"):
        return HookResponse(), False
    failed = table.get("failed", {})
    pending = table.setdefault("pending", [])
    suspicious = False
    for tool, args, result, flagged, call in heard.steps:
        said = _short(result)
        known = failed.pop(call, False)
        if flagged and not known and heard.agent != "claude-code":  # which told of it before
            spool.note(
                memory, heard, now, "failed", tool=tool, text=_short(flagged if isinstance(flagged, str) else said)
            )
        error = known or flagged
        table["acts"] = table.get("acts", 0) + 1
        table["calls"] = table.get("calls", 0) + 1
        table["failing"] = f"{tool}: {_short(error if isinstance(error, str) else said)[:300]}" if error else ""
        step = [tool, _small(args), "" if known else said, error]
        pending.append(step)
        if table["stop"].get("judge"):
            table["recent"] = [*table.get("recent", ()), step][-RECENT:]
        suspicious = _glance(table, step) or suspicious
    if not suspicious and len(pending) < PENDING:
        return HookResponse(), True
    from rung.hooks.loop_check import noticed

    return HookResponse(context=noticed(heard, memory, now)), True


def _glance(table: dict[str, Any], step: list[Any]) -> bool:
    """Have as many like this one been seen as a rule needs?"""
    tool, args, said, error = step
    if isinstance(error, str):
        said = f"{error}\n{said}"
    counts = table.setdefault("counts", {})
    if len(counts) > COUNTS:
        counts.clear()
    enough = table["loops"].get("replan", 3)
    most = 0
    for key in (str(outcome_checksum(said, args)), f"!{tool}" if error else ""):
        if key:
            counts[key] = counts.get(key, 0) + 1
            most = max(most, counts[key])
    call = crc32(repr((tool, args)).encode("utf-8", "replace"))
    last, run = table.get("last", (0, 0))
    run = run + 1 if last == call else 1
    table["last"] = [call, run]
    most = max(most, run)
    if most == enough - 1:
        table["near"] = True
    return bool(most >= enough)


def _short(value: Any) -> str:
    """The head and the tail of a text."""
    if value is None or value is True or value is False:
        return ""
    if not isinstance(value, str):
        import json

        value = json.dumps(value, sort_keys=True, ensure_ascii=False)
    text: str = value
    return text if len(text) <= _HEAD + _TAIL else text[:_HEAD] + "\n" + text[-_TAIL:]


def _small(args: Any) -> Any:
    """A call's arguments, cut where they are long."""
    if isinstance(args, dict) and len(args) <= FAILED:
        return {name: value if isinstance(value, bool | int | float) else _short(value) for name, value in args.items()}
    return _short(args)


def _stop(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    from rung.hooks.stop_gate import at_stop

    return at_stop(heard, memory, now), True


def _broke(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    """The model could not be reached any more: whatever the agent says of it, this is no success."""
    spool.note(memory, heard, now, "failed", tool="", text=heard.text[: spool.TEXT])
    memory.table["partial"] = f"the agent was cut off: {heard.text[:200]}"
    return HookResponse(), True


def _compact(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    """A compaction is due; the user hears when the work no longer fits the context."""
    from rung.detectors.context_usage import ContextMonitor

    table = memory.table
    watch = ContextMonitor.from_json(table["context"]) if "context" in table else ContextMonitor()
    calls = table.get("calls", 0)
    finding = watch.full_again(calls - table.get("compacted_at", calls))
    table["context"], table["compacted_at"] = watch.to_json(), calls
    if finding is None:
        return HookResponse(), True
    spool.note_finding(memory, heard, now, finding)
    return HookResponse(notice=f"rung: {finding.text}; split the task"), True


def _end(heard: HookEvent, memory: SessionState, now: float) -> tuple[HookResponse, bool]:
    """The session is over: how it ended, in our words."""
    from rung.hooks.data_dir import cut_off

    why = cut_off(memory.table["place"], heard.session)
    if why:
        spool.note(memory, heard, now, "failed", tool="", text=why)
        memory.table["partial"] = f"the agent was cut off: {why[:200]}"
    table = memory.table
    partial = table.pop("partial", "")
    if partial:
        spool.note(memory, heard, now, "closed", status="partial", reason=partial)
    else:
        spool.note(memory, heard, now, "succeeded")
    for name in ("incident", "n", "history", "ending", "denied"):  # taken up again, it is another incident
        table.pop(name, None)
    table["began"] = now
    return HookResponse(), True


ACTS: Final[dict[str, Callable[[HookEvent, SessionState, float], tuple[HookResponse, bool]]]] = {
    "start": _start,
    "prompt": _prompt,
    "before": _before,
    "failed": _failed,
    "after": _after,
    "stop": _stop,
    "broke": _broke,
    "compact": _compact,
    "end": _end,
}
