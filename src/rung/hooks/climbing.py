"""The ladder of a session that we only speak to: what is said, and when it must end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core import events as ev
from rung.core.classify import classify
from rung.core.decide import decide
from rung.core.failures import Evidence, Kind
from rung.core.incident import Incident
from rung.core.ladder import Action, Ladder, Rung
from rung.core.policy import Policy
from rung.core.request import Request

if TYPE_CHECKING:
    from rung.core.failures import Failure
    from rung.detectors.finding import Finding
    from rung.detectors.watching import Watching

NAME: Final = "session"
RUNGS: Final = ("nudge", "replan", "explore", "force-done")
_LOOPS: Final = frozenset({Kind.LOOP_DETECTED})
_REMEMBERED: Final = 30
_EITHER: Final = 0.5  # nothing here waits, so chance has no say


def policy_for(watching: Watching, blocks: int) -> Policy:
    """The policy of a session: another word, another plan, another method, an end."""
    ladder = Ladder(
        name=NAME,
        about="A coding agent's own session, spoken to through its hooks.",
        rungs=(
            Rung(action=Action.NUDGE, tries=blocks, applies_to=frozenset(Kind) - _LOOPS),
            Rung(action=Action.REPLAN, tries=5, applies_to=_LOOPS),
            Rung(action=Action.REPLAN, name="explore", tries=3, applies_to=_LOOPS),
            Rung(action=Action.FORCE_DONE),
        ),
        entry={Kind.LOOP_DETECTED: "replan"},
        default_entry="nudge",
        loops=((watching.replan, "replan"), (watching.explore, "explore"), (watching.force_done, "force-done")),
    )
    return Policy(ladder=ladder, name="hooks", unattended=True)


def next_step(table: dict[str, Any], finding: Finding, policy: Policy, now: float) -> ev.Decision:
    """What the ladder says to this finding, after what was said in this session before."""
    history: list[list[Any]] = table.setdefault("history", [])
    told: list[ev.Event] = [
        ev.Opened(table["began"], "", ev.Terms(NAME, policy.name), Request(prompt=table.get("prompt") or "-"))
    ]
    for kind, repeats, rung, action in history:
        failure = classify(Evidence(finding=Kind(kind), repeats=repeats))
        told.append(_failed(now, failure))
        told.append(ev.Decided(now, ev.Change(rung, Action(action), 0.0, kind)))
    failure = finding.failure
    incident = Incident.of([*told, _failed(now, failure)])
    decision = decide(incident, failure, policy, now, _EITHER)
    if isinstance(decision, ev.Change):
        history.append([failure.kind.value, failure.evidence.repeats, decision.rung, decision.action.value])
        del history[:-_REMEMBERED]
    return decision


def _failed(now: float, failure: Failure) -> ev.AttemptFailed:
    return ev.AttemptFailed(now, failure, 0.0, 0.0, may_retry=True)
