"""Steps of a trajectory as the search for its root cause sees them: what failed, of which kind, and what changes something."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.recovery.session_step import SessionStep
from rung.detectors.behaviour.constraints import read_constraints
from rung.detectors.behaviour.step_acts import has_failed
from rung.detectors.behaviour.violations import violation
from rung.detectors.loops import normalize
from rung.detectors.loops.side_effects import Effect, action_of, effect_of
from rung.detectors.session_monitor import SessionMonitor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.step import Step

_KILLED: Final = re.compile(r"\btimed out and (?:has been|was) killed\b")
_REPEATING_RULES: Final = frozenset({"repeated-block", "stuck-call"})


def session_steps(steps: Sequence[Step], task: str = "", numbers: Sequence[int] | None = None) -> list[SessionStep]:
    """Return the steps of a trajectory. A step that repeats without effect, or violates the task, counts as failed."""
    repeated = _repeated_steps(steps)
    constraints = read_constraints(task)
    found = []
    for index, step in enumerate(steps):
        effect = effect_of(step.tool, step.args)
        if not step.tool or effect in (Effect.NONE, Effect.TALK):
            continue
        text = _text_of(step)
        failed, kind = has_failed(step) or _KILLED.search(text) is not None, Kind.UNKNOWN
        broken = None if failed else violation(step, constraints)
        if failed:
            kind = classify(Evidence(text=text, tool=step.tool, phase=Phase.TOOL)).kind
        elif broken is not None:
            failed, kind, text = True, broken.kind, broken.text
        elif index in repeated:
            failed, kind, text = True, Kind.LOOP_DETECTED, ""
        arguments = normalize.parsed_arguments(step.args)
        found.append(
            SessionStep(
                number=index if numbers is None else numbers[index],
                action=action_of(step.tool, arguments),
                call=normalize.clipped(arguments),
                text=text,
                failed=failed,
                kind=kind,
                changes=effect is Effect.CHANGE,
            )
        )
    return found


def _text_of(step: Step) -> str:
    said = step.error if isinstance(step.error, str) else ""
    return "\n".join(filter(None, (said, normalize.clipped(step.result))))


def _repeated_steps(steps: Sequence[Step]) -> set[int]:
    """Return the positions of the steps that belong to a loop: the same call, before and in it."""
    monitor = SessionMonitor()
    repeated: set[int] = set()
    for index, step in enumerate(steps):
        finding = monitor.check(step)
        if finding is not None and finding.rule in _REPEATING_RULES:
            call = (step.tool, normalize.clipped(step.args))
            start = max(0, index - monitor.settings.window)
            same = [at for at in range(start, index + 1) if (steps[at].tool, normalize.clipped(steps[at].args)) == call]
            if not any(has_failed(one) for one in steps[same[0] : index]):  # else the failure is what repeats
                repeated.update(same)
    return repeated
