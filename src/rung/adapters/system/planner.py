"""Commands that find the cause of a failure, or make a new plan: a case as JSON on standard input, text on standard output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.process import run_command
from rung.core.classify.evidence import clip
from rung.core.domain.errors import RungError
from rung.core.domain.ladder import Action
from rung.core.policy.prompts import prompt_id, render, without_task
from rung.core.recovery.known_bad import planning_case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request

PLANNER_SECONDS: Final = 300.0
MAX_PLAN_CHARACTERS: Final = 20_000


class PlannerFailed(RungError):
    """A planner or investigator command failed, or wrote nothing."""


class CommandInvestigator:
    """Root-cause analysis by a command; the `investigate` port of `recover`."""

    def __init__(
        self, command: str | Sequence[str], *, seconds: float = PLANNER_SECONDS, cwd: str | Path | None = None
    ) -> None:
        self._command, self._seconds, self._cwd = command, seconds, cwd

    def __call__(self, _: Request, incident: Incident) -> str:
        """Return the cause that the command names."""
        return _ask(self._command, incident, self._seconds, self._cwd)


class CommandPlanner:
    """New plans by a command; a rung handler of `replan`."""

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        prompts: Mapping[str, str],
        seconds: float = PLANNER_SECONDS,
        cwd: str | Path | None = None,
    ) -> None:
        self._command, self._prompts, self._seconds, self._cwd = command, prompts, seconds, cwd

    def __call__(self, request: Request, incident: Incident) -> Request:
        """Return the request with the command's plan: the abandoned approach, the plan, the task."""
        plan = _ask(self._command, incident, self._seconds, self._cwd)
        failure = incident.failures[-1]
        head = without_task(render(prompt_id(Action.REPLAN, failure), incident, failure, self._prompts))
        task = incident.first_request.prompt if incident.first_request is not None else ""
        text = f"{head}\n\nFollow this plan:\n{plan}\n\nThe task:\n{task or '(as given before)'}"
        if request.messages:
            return request.replace(messages=(*request.messages, {"role": "user", "content": text}), recovery=text)
        return request.replace(prompt=text, recovery=text)


def _ask(command: str | Sequence[str], incident: Incident, seconds: float, cwd: str | Path | None) -> str:
    return ask_planner(command, planning_case(incident, incident.failures[-1]), seconds=seconds, cwd=cwd)


def ask_planner(
    command: str | Sequence[str],
    case: Mapping[str, Any],
    *,
    seconds: float = PLANNER_SECONDS,
    cwd: str | Path | None = None,
) -> str:
    """Return what a planner's command writes about a case. PlannerFailed if it fails or writes nothing."""
    done = run_command(command, json.dumps(case), seconds=seconds, keep=0, cwd=cwd)
    if done.code:
        raise PlannerFailed(f"the command exited {done.code}: {clip(done.errors.strip(), 500)}")
    text = clip(done.output.strip(), MAX_PLAN_CHARACTERS)
    if not text:
        raise PlannerFailed("the command wrote nothing to standard output")
    return text
