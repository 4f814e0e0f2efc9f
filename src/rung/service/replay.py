"""Recorded requests made again: by whoever waits for them, or from here through whatever can reach their model."""

from __future__ import annotations

import json
import threading
import uuid
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.classify.evidence import clip
from rung.core.domain.incident import Incident
from rung.core.policy.prompts import render
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.engine.recover import recover_sync
from rung.engine.session import Session
from rung.service.problems import ApiProblem
from rung.store.project_scope import ProjectJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal

MAX_RESULT_CHARS: Final = 64 * 1024  # of a result that is kept for whoever asked
TRUNCATION_MARK: Final = "characters left out"  # how a text that was cut for the journal says so


class Replayer(Protocol):
    """Can make an attempt at a recorded request from here."""

    def supports(self, request: Request) -> bool:
        """Is this request one of mine?"""
        ...

    def __call__(self, request: Request) -> Any:
        """Make the attempt, blocking; its result, or what it raises."""
        ...


class Replayers:
    """All of them, in the order they are asked."""

    def __init__(self, journal: Journal, replayers: Sequence[Replayer] = ()) -> None:
        self.journal = journal
        self.replayers = list(replayers)

    def find(self, request: Request | None) -> Replayer | None:
        """The one that can make this request."""
        return next((one for one in self.replayers if request is not None and one.supports(request)), None)

    def why_not(self, incident: Incident) -> str:
        """Why this incident's request cannot be made from here; empty: it can."""
        request = incident.request
        if request is None or not (request.prompt or request.messages):
            return "its request was not recorded: it can only be retried by the program that made it"
        if TRUNCATION_MARK in json.dumps([request.prompt, list(request.messages)]):
            return "its request was too long to be recorded whole"
        if self.find(request) is None:
            return (
                f"nothing here can reach {request.model or 'its agent'}: start the service with the model's key set"
                " (ANTHROPIC_API_KEY, OPENAI_API_KEY), or call it again from its own program"
            )
        return ""

    def start(self, incident: Incident, order: Intervention, policy: Policy) -> str:
        """Make it again in the background, as a new incident of the same session; its id."""
        request = incident.request
        replayer = self.find(request)
        if request is None or replayer is None:
            raise ApiProblem(409, self.why_not(incident))
        name = f"again-{uuid.uuid4().hex[:12]}"
        ports = {
            "policy": policy,
            "journal": ProjectJournal(self.journal, incident.terms.project),
            "session": Session(order.model or request.model, incident.terms.session),
            "incident_id": name,
        }
        work = (replayer, order.applied(request), ports)
        threading.Thread(target=self._recover, args=work, name=f"rung-{name}", daemon=True).start()
        return name

    def _recover(self, attempt: Callable[[Request], Any], request: Request, ports: dict[str, Any]) -> None:
        """Recover the request, and send its result to whoever asked."""
        outcome = recover_sync(attempt, request, **ports)
        told = outcome.value if outcome.ok else outcome.reason
        text = told if isinstance(told, str) else json.dumps(told, default=str)
        self.journal.runs.send(f"result/{outcome.id}", {"ok": outcome.ok, "text": clip(text, MAX_RESULT_CHARS)})


def load_incident(journal: Journal, incident: str) -> tuple[Incident, list[Event]]:
    """An incident as its events make it."""
    events = journal.events(incident)
    if not events:
        raise ApiProblem(404, f"there is no incident {incident!r}")
    return Incident.of(events), events


def error_context(incident: Incident, policy: Policy) -> str:
    """What an attempt would be told of the failure before it."""
    if incident.failure is None or incident.request is None:
        return incident.request.prompt if incident.request is not None else ""
    return render("context.error", incident, incident.failure, policy.prompts)


def retry_intervention(mode: str, model: str | None, prompt: str | None, context: str, by: str) -> Intervention:
    """The order that a person's choice amounts to."""
    if mode == "model" and not model:
        raise ApiProblem(422, "model: which one?", field="model")
    if mode == "prompt" and not prompt:
        raise ApiProblem(422, "prompt: what should it be told?", field="prompt")
    told = {"plain": "", "model": prompt or "", "context": prompt or context, "prompt": prompt or ""}[mode]
    return Intervention(InterventionType.RETRY, by, model or "", told)
