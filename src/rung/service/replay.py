"""Replay of recorded requests: a new incident runs the request again through a client of this process."""

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
from rung.service.spending import PaidReplay, Spending
from rung.store.project_scope import ProjectJournal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal

MAX_RESULT_CHARS: Final = 64 * 1024
TRUNCATION_MARK: Final = "characters left out"  # in texts that `clip` shortened for the journal


class Replayer(Protocol):
    """A client that can make an attempt at a recorded request."""

    def supports(self, request: Request) -> bool:
        """Return whether this client can make this request."""
        ...

    def __call__(self, request: Request) -> Any:
        """Make the attempt, blocking; return its result or raise its error."""
        ...


class Replayers:
    """The replay clients of a service, in order of preference."""

    def __init__(self, journal: Journal, replayers: Sequence[Replayer] = (), spending: Spending | None = None) -> None:
        self.journal = journal
        self.replayers = list(replayers)
        self.spending = spending or Spending(journal)

    def find(self, request: Request | None) -> Replayer | None:
        """Return the first client that can make this request."""
        return next(
            (replayer for replayer in self.replayers if request is not None and replayer.supports(request)), None
        )

    def why_not(self, incident: Incident) -> str:
        """Return why this incident's request cannot be replayed; empty if it can."""
        request = incident.request
        if request is None or not (request.prompt or request.messages):
            return "the request was not recorded: only the program that made it can retry it"
        if TRUNCATION_MARK in json.dumps([request.prompt, list(request.messages)]):
            return "the request was too long to be recorded completely"
        if self.find(request) is None:
            return (
                f"no client for {request.model or 'its agent'} is configured: start the service with the model's API key set"
                " (ANTHROPIC_API_KEY, OPENAI_API_KEY), or retry from the program that made the request"
            )
        return ""

    def start(self, incident: Incident, intervention: Intervention, policy: Policy) -> str:
        """Start the replay in the background as a new incident of the same session; return its id."""
        request = incident.request
        replayer = self.find(request)
        if request is None or replayer is None:
            raise ApiProblem(409, self.why_not(incident))
        name = f"again-{uuid.uuid4().hex[:12]}"
        again = intervention.apply_to(request)
        attempt = PaidReplay(self.spending, replayer, name, policy, incident.terms.session, incident.terms.project)
        attempt.reserve(again)
        ports = {
            "policy": policy,
            "journal": ProjectJournal(self.journal, incident.terms.project),
            "session": Session(intervention.model or request.model, incident.terms.session),
            "incident_id": name,
        }
        work = (attempt, again, ports)
        threading.Thread(target=self._recover, args=work, name=f"rung-{name}", daemon=True).start()
        return name

    def _recover(self, attempt: PaidReplay, request: Request, ports: dict[str, Any]) -> None:
        """Run the request with recovery and store its result for the incident page."""
        outcome = recover_sync(attempt, request, **ports)
        attempt.release()
        value = outcome.value if outcome.ok else outcome.reason
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        self.journal.runs.send(f"result/{outcome.id}", {"ok": outcome.ok, "text": clip(text, MAX_RESULT_CHARS)})


def load_incident(journal: Journal, incident: str) -> tuple[Incident, list[Event]]:
    """Return an incident folded from its events, with the events."""
    events = journal.events(incident)
    if not events:
        raise ApiProblem(404, f"there is no incident {incident!r}")
    return Incident.of(events), events


def error_context(incident: Incident, policy: Policy) -> str:
    """Return the prompt that tells the next attempt about the last failure."""
    if incident.failure is None or incident.request is None:
        return incident.request.prompt if incident.request is not None else ""
    return render("context.error", incident, incident.failure, policy.prompts)


def retry_intervention(mode: str, model: str | None, prompt: str | None, context: str, by: str) -> Intervention:
    """Return the intervention for a manual retry."""
    if mode == "model" and not model:
        raise ApiProblem(422, "model: required in mode 'model'", field="model")
    if mode == "prompt" and not prompt:
        raise ApiProblem(422, "prompt: required in mode 'prompt'", field="prompt")
    text = {"plain": "", "model": prompt or "", "context": prompt or context, "prompt": prompt or ""}[mode]
    return Intervention(InterventionType.RETRY, by, model or "", text)
