"""Decisions about a coding agent's session: the session ladder, continued from the saved history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Kind
from rung.core.domain.ladder import Action
from rung.core.domain.reporting_agents import HOOKS_POLICY
from rung.core.domain.request import Request
from rung.detectors.loop_settings import loop_settings_from
from rung.detectors.session_policy import MAX_NUDGES, session_policy
from rung.engine.external_loop import ExternalRecovery

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy

_MAX_HISTORY: Final = 30
_POLICY_SECONDS: Final = 2.0  # an agent waits for its hook
_JITTER: Final = 0.5  # nothing here waits


def next_step(table: dict[str, Any], evidence: Evidence, now: float) -> tuple[ev.Decision, str]:
    """Return the decision about a failure of this session, and the name of its rung."""
    policy = _policy(table)
    request = Request(prompt=table.get("prompt") or "-")
    recovery = ExternalRecovery(policy, request=request, now=lambda: now, jitter=lambda: _JITTER)
    history: list[list[Any]] = table.setdefault("history", [])
    for kind, repeats, rung, action in history:
        recovery.record_failure(Evidence(finding=Kind(kind), repeats=repeats))
        recovery.record_decision(ev.Change(rung, Action(action), 0.0, kind))
    decision = recovery.failed(evidence, close=False)
    if isinstance(decision, ev.Change):
        kind = evidence.finding or Kind.UNKNOWN
        history.append([kind.value, evidence.repeats, decision.rung, decision.action.value])
        del history[:-_MAX_HISTORY]
    return decision, policy.ladder.rungs[decision.rung].name


def must_stop(table: dict[str, Any], now: float) -> bool:
    """Return whether an agent that calls tools after the last rung is stopped; otherwise the call is only denied."""
    evidence = Evidence(finding=Kind.LOOP_DETECTED, repeats=loop_settings_from(table["loops"]).force_done)
    return isinstance(next_step(table, evidence, now)[0], ev.Finish)


def is_off(table: dict[str, Any], tool: str) -> bool:
    """Return whether the project's policy disables recovery, for all tools or for this one.

    An invalid file, or a store that fails or does not answer in time, disables nothing.
    """
    from threading import Thread

    from rung.hooks.crash_log import log_crash
    from rung.wiring.policies import directory_policy

    found: list[bool] = []

    def look_up() -> None:
        try:
            found.append(directory_policy(table["root"], table["journal"], tool).is_off)
        except Exception as error:  # noqa: BLE001  # logged: the agent goes on
            log_crash(table["place"], "policy", error)

    reader = Thread(target=look_up, daemon=True)
    reader.start()
    reader.join(_POLICY_SECONDS)
    return bool(found) and found[0]


def max_blocks(table: dict[str, Any]) -> int:
    """Return how often a stop of this session may be blocked."""
    return int(table["stop"].get("max_blocks", MAX_NUDGES))


def _policy(table: dict[str, Any]) -> Policy:
    return session_policy(loop_settings_from(table["loops"]), nudges=max_blocks(table), name=HOOKS_POLICY)
