"""Handlers of hook events: update the session's state, run the checks, and return a response."""

from __future__ import annotations

import os
import time
from zlib import crc32

from rung.detectors.loops.prefilter import outcome_checksum
from rung.hooks import fast_json, spool
from rung.hooks.agent_formats import EVENTS, HookEvent, HookResponse, format_response
from rung.hooks.crash_log import log_crash, unread_crashes
from rung.hooks.session_state import SessionState, prune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

MAX_PENDING_STEPS: Final = 40  # steps after which the loop detectors run even if nothing looks repetitive
MAX_COUNTS: Final = 500
MAX_FAILED_CALLS: Final = 50
MAX_RECENT_STEPS: Final = 15  # steps shown to a judge
_HEAD_CHARS: Final = 1_500
_TAIL_CHARS: Final = 500
_MAX_PROMPT_CHARS: Final = 2_000


def handle_event(agent: str, data_dir: str, payload: bytes, journal: str | None = None) -> tuple[bytes, bool, bool]:
    """Handle one event.

    Returns the response as JSON, whether the spool has to be drained, and whether a resident server should be started
    because an expensive check is near.
    """
    if agent not in EVENTS:
        raise ValueError(f"agent: {agent!r} is invalid; must be one of {', '.join(EVENTS)}")
    table = fast_json.loads(payload)
    if not isinstance(table, dict):
        raise ValueError("the event is not a JSON object")  # noqa: TRY004  # as any other malformed event
    event = HookEvent(agent, table)
    if not event.name or not event.session:
        return b"{}", False, False
    with SessionState(data_dir, agent, event.session) as state:
        state.table["place"], state.table["cwd"] = data_dir, event.cwd
        state.table["journal"] = os.environ.get("RUNG_JOURNAL", "") if journal is None else journal
        _load_settings(state.table, event)
        response, changed = HANDLERS[event.name](event, state, time.time())
        _notify_untrusted(event, state.table, response)
        _add_notes(event, state.table, response)
        needs_server = state.table.pop("near", False)
        flushed = spool.flush(data_dir, state)
        if changed or flushed:  # before the response: a block that cannot be counted is not made
            state.save()
    needs_drain = flushed and event.name in ("after", "stop", "end", "broke")
    return fast_json.dumps(format_response(event, response)).encode(), needs_drain, needs_server


def _load_settings(table: dict[str, Any], event: HookEvent) -> None:
    """Read the [loops] and [stop] tables of the project's rung.toml, once per session; again while it is not trusted.

    What was trusted stays in force for the session, so that an agent cannot drop a check by changing the file. The
    project is the session's first directory: where the agent moves to later decides nothing.
    """
    if "stop" in table and not (table.get("untrusted") and event.name in ("prompt", "stop")):
        return
    table["loops"], table["stop"], table["untrusted"], table["notes"] = {}, {}, "", ""
    root = table.setdefault("root", os.path.abspath(event.cwd))  # noqa: PTH100
    if os.path.lexists(os.path.join(root, "rung.toml")):  # noqa: PTH118
        from rung.wiring.settings_file import find

        try:
            file = find(root, quiet=True)
            if file is not None:
                file.loops()
                table["loops"], table["stop"] = file.table.get("loops", {}), file.stop()
                table["untrusted"] = file.notice() if file.is_undecided else ""
                folder = file.table.get("notes")
                if isinstance(folder, str) and folder:
                    table["notes"] = os.path.join(root, folder)  # noqa: PTH118
        except Exception as error:  # noqa: BLE001  # an invalid file is logged once, and the defaults apply
            log_crash(table["place"], "rung.toml", error)


def _notify_untrusted(event: HookEvent, table: dict[str, Any], response: HookResponse) -> None:
    """Tell the user once in a session that the project's file is not trusted; not every agent reports a start."""
    untrusted = table.get("untrusted", "")
    if event.name in ("start", "prompt") and untrusted and table.get("told_untrusted") != untrusted:
        table["told_untrusted"] = untrusted
        response.notice = "\n".join(filter(None, (response.notice, f"rung: {untrusted}")))


def _add_notes(event: HookEvent, table: dict[str, Any], response: HookResponse) -> None:
    """Give the agent the project's notes when its session starts; not every agent reports a start."""
    folder = table.get("notes")
    if not folder or not (event.name == "start" or (event.name == "prompt" and not table.get("told_notes"))):
        return
    from rung.adapters.system.project_notes import ProjectNotes

    table["told_notes"] = True
    try:
        text = ProjectNotes(folder).read()
    except OSError as error:
        log_crash(table["place"], "notes", error)
        return
    if text:
        known = f"What is known in this project about earlier failures (rung):\n{text}"
        response.context = "\n".join(filter(None, (response.context, known)))


def _start(_: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    prune(state.table["place"], now)
    return HookResponse(notice=unread_crashes(state.table["place"])), True


def _prompt(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    """Handle a prompt of the user: repetitions are counted anew, blocked stops are not."""
    table = state.table
    for name in (
        "ending",
        "denied",
        "watch",
        "pending",
        "counts",
        "last",
        "history",
        "failing",
        "partial",
        "recent",
        "sent_back",
        "constraints",
        "failing_tests",
    ):
        table.pop(name, None)
    _read_constraints(table, event.text)
    table["acts"] = 0
    table["prompt"] = event.text[:_MAX_PROMPT_CHARS]
    table["asked"] = now
    table["near"] = True  # at least its stop will be checked
    return HookResponse(), True


def _read_constraints(table: dict[str, Any], prompt: str) -> None:
    """Remember what the prompt forbids; a prompt without a negation is not read."""
    if _has_negation(prompt.lower()):
        from rung.detectors.behaviour.constraints import read_constraints

        table["constraints"] = [list(one) for one in read_constraints(prompt)]


def _has_negation(prompt: str) -> bool:
    return any(word in prompt for word in ("not ", "n't ", "n’t ", "never ", "only "))  # noqa: RUF001  # as people type it


def _before(_: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    fact = state.table.get("ending")
    if not fact:
        return HookResponse(), False
    from rung.hooks import messages
    from rung.hooks.session_ladder import must_stop

    denied = state.table["denied"] = state.table.get("denied", 0) + 1
    stop = messages.stopped(fact) if must_stop(state.table, now) else ""
    return HookResponse(deny=messages.denied(fact, denied), stop=stop), True


def _failed(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    """Record a failed call; the event for its batch follows."""
    for tool, _, _, _, call in event.steps:
        failed_calls = state.table.setdefault("failed", {})
        if len(failed_calls) >= MAX_FAILED_CALLS:
            failed_calls.clear()
        failed_calls[call] = event.text[:_HEAD_CHARS] or True
        spool.record_event(state, event, now, "failed", tool=tool, text=event.text[: spool.MAX_TEXT_CHARS])
    return HookResponse(), True


def _after(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    table = state.table
    if table.get("ending"):
        return HookResponse(), False
    failed = table.get("failed", {})
    pending = table.setdefault("pending", [])
    suspicious = False
    for tool, args, result, flagged, call in event.steps:
        output = _clip(result)
        reported = failed.pop(call, False)
        if (
            flagged and not reported and event.agent != "claude-code"
        ):  # Claude Code reports failures in an event of their own
            spool.record_event(
                state, event, now, "failed", tool=tool, text=_clip(flagged if isinstance(flagged, str) else output)
            )
        error = reported or flagged
        table["acts"] = table.get("acts", 0) + 1
        table["calls"] = table.get("calls", 0) + 1
        table["failing"] = f"{tool}: {_clip(error if isinstance(error, str) else output)[:300]}" if error else ""
        step = [tool, _clip_arguments(args), "" if reported else output, error]
        pending.append(step)
        if table["stop"].get("judge"):
            table["recent"] = [*table.get("recent", ()), step][-MAX_RECENT_STEPS:]
        suspicious = _is_repetitive(table, step) or suspicious
    response = _check_behaviour(event, state, now, pending[-len(event.steps) :])
    if not suspicious and len(pending) < MAX_PENDING_STEPS:
        return response, True
    from rung.hooks.loop_check import check_pending_steps

    found = check_pending_steps(event, state, now)
    response.context = "\n".join(filter(None, (response.context, found)))
    return response, True


def _check_behaviour(event: HookEvent, state: SessionState, now: float, steps: list[list[Any]]) -> HookResponse:
    """Check new steps against the prompt's constraints, and note whether the tests fail; only if there is a reason to."""
    table = state.table
    if not (
        table.get("constraints") or table.get("failing_tests") or any("fail" in str(step[2:]).lower() for step in steps)
    ):
        return HookResponse()
    from rung.hooks.behaviour_check import check_steps

    return check_steps(event, state, now, steps)


def _is_repetitive(table: dict[str, Any], step: list[Any]) -> bool:
    """Return whether enough similar steps were seen for a loop rule to match."""
    tool, args, output, error = step
    if isinstance(error, str):
        output = f"{error}\n{output}"
    counts = table.setdefault("counts", {})
    if len(counts) > MAX_COUNTS:
        counts.clear()
    threshold = table["loops"].get("replan", 3)
    highest = 0
    for key in (str(outcome_checksum(output, args)), f"!{tool}" if error else ""):
        if key:
            counts[key] = counts.get(key, 0) + 1
            highest = max(highest, counts[key])
    call = crc32(repr((tool, args)).encode("utf-8", "replace"))
    last, run = table.get("last", (0, 0))
    run = run + 1 if last == call else 1
    table["last"] = [call, run]
    highest = max(highest, run)
    if highest == threshold - 1:
        table["near"] = True
    return bool(highest >= threshold)


def _clip(value: Any) -> str:
    """Return the head and the tail of a text."""
    if value is None or value is True or value is False:
        return ""
    if not isinstance(value, str):
        import json

        value = json.dumps(value, sort_keys=True, ensure_ascii=False)
    text: str = value
    return text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else text[:_HEAD_CHARS] + "\n" + text[-_TAIL_CHARS:]


def _clip_arguments(args: Any) -> Any:
    """Return a call's arguments with long values clipped."""
    if isinstance(args, dict) and len(args) <= MAX_FAILED_CALLS:
        return {name: value if isinstance(value, bool | int | float) else _clip(value) for name, value in args.items()}
    return _clip(args)


def _stop(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    from rung.hooks.stop_gate import check_stop

    return check_stop(event, state, now), True


def _api_failed(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    """Record that the provider failed for good: the outcome is partial, whatever the agent reports."""
    spool.record_event(state, event, now, "failed", tool="", text=event.text[: spool.MAX_TEXT_CHARS])
    state.table["partial"] = f"the agent was interrupted: {event.text[:200]}"
    return HookResponse(), True


def _compact(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    """Record a compaction; warn the user when the context fills up again at once."""
    from rung.detectors.context_usage import ContextMonitor

    table = state.table
    monitor = ContextMonitor.from_json(table["context"]) if "context" in table else ContextMonitor()
    calls = table.get("calls", 0)
    finding = monitor.full_again(calls - table.get("compacted_at", calls))
    table["context"], table["compacted_at"] = monitor.to_json(), calls
    if finding is None:
        return HookResponse(), True
    spool.record_finding(state, event, now, finding)
    return HookResponse(notice=f"rung: {finding.text}; split the task"), True


def _end(event: HookEvent, state: SessionState, now: float) -> tuple[HookResponse, bool]:
    """Close the session's incident: partial, or recovered."""
    from rung.hooks.data_dir import pop_interruption

    interruption = pop_interruption(state.table["place"], event.session)
    if interruption:
        spool.record_event(state, event, now, "failed", tool="", text=interruption)
        state.table["partial"] = f"the agent was interrupted: {interruption[:200]}"
    table = state.table
    partial = table.pop("partial", "")
    if partial:
        spool.record_event(state, event, now, "closed", status="partial", reason=partial)
    else:
        spool.record_event(state, event, now, "succeeded")
    for name in ("incident", "n", "history", "ending", "denied"):  # a resumed session opens a new incident
        table.pop(name, None)
    table["began"] = now
    return HookResponse(), True


HANDLERS: Final[dict[str, Callable[[HookEvent, SessionState, float], tuple[HookResponse, bool]]]] = {
    "start": _start,
    "prompt": _prompt,
    "before": _before,
    "failed": _failed,
    "after": _after,
    "stop": _stop,
    "broke": _api_failed,
    "compact": _compact,
    "end": _end,
}
