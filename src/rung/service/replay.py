"""Replay of recorded requests: a new incident runs the request again through a client of this process."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.classify.evidence import clip
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.core.policy.call_costs import RequestSize
from rung.core.policy.prompts import render, without_task
from rung.core.policy.spend_estimates import named_output_limit
from rung.core.recovery.interventions import Intervention
from rung.engine.recover import recover_sync
from rung.engine.session import Session
from rung.service.api_problem import ApiProblem
from rung.service.retry_ways import (
    API_KEY,
    PLAIN,
    CommandRetries,
    GatewayRetries,
    RetryChoice,
    agent_reason,
    new_incident_id,
    pipeline_run,
    way_in_of,
)
from rung.service.spending import PaidReplay, Spending
from rung.store.project_scope import ProjectJournal
from rung.store.recorded_calls import COMMAND, GATEWAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.core.policy.policy import Policy
    from rung.service.retry_ways import CommandRunner
    from rung.store.journal.journal import Journal

MAX_RESULT_CHARS: Final = 64 * 1024
TRUNCATION_MARK: Final = "characters left out"  # in texts that `clip` shortened for the journal
SECRET_MARK: Final = "<secret:"  # noqa: S105  # in texts that were redacted for the journal


class Replayer(Protocol):
    """A client that can make an attempt at a recorded request."""

    def supports(self, request: Request) -> bool:
        """Return whether this client can make this request."""
        ...

    def __call__(self, request: Request) -> Any:
        """Make the attempt, blocking; return its result or raise its error."""
        ...


class Replayers:
    """The ways of a service to make a call again: its clients in order of preference, gateways, and commands."""

    def __init__(
        self,
        journal: Journal,
        replayers: Sequence[Replayer] = (),
        spending: Spending | None = None,
        runner: CommandRunner | None = None,
    ) -> None:
        self.journal = journal
        self.replayers = list(replayers)
        self.spending = spending or Spending(journal)
        self.gateways = GatewayRetries(journal)
        self.commands = CommandRetries(journal, runner)

    def find(self, request: Request | None) -> Replayer | None:
        """Return the first client that can make this request."""
        return next(
            (replayer for replayer in self.replayers if request is not None and replayer.supports(request)), None
        )

    def is_gateway_call(self, incident: Incident) -> bool:
        """Return whether a gateway made an incident's call, and makes the next one of its session."""
        return way_in_of(self.journal, incident) == GATEWAY

    def needs(self, incident: Incident) -> tuple[str, ...]:
        """Return the fields that the person must give with a retry."""
        return self.gateways.needs(incident) if self.is_gateway_call(incident) else ()

    def size_of(self, incident: Incident) -> RequestSize:
        """Return the size of an incident's request, as far as it is known."""
        way_in, request = way_in_of(self.journal, incident), original_request(incident)
        if way_in == GATEWAY:
            return self.gateways.size_of(incident)
        if way_in == COMMAND or request is None:
            return RequestSize()
        limit = request.max_tokens or named_output_limit(request.params)
        return RequestSize(0 if why_unusable(request) else request.size(), limit)

    def why_not(self, incident: Incident, choice: RetryChoice = PLAIN) -> str:
        """Return why this incident's call cannot be made again; empty if it can."""
        way_in = way_in_of(self.journal, incident)
        if way_in == GATEWAY:
            return self.gateways.why_not(incident, choice)
        if way_in == COMMAND:
            return self.commands.why_not(incident, choice)
        if reason := agent_reason(incident):
            return reason
        if run := pipeline_run(incident):
            resume = f"`rung pipeline run FILE --resume {run}`"
            return (
                f"the stage's command was not recorded: {resume} tries it again and keeps the stages that have passed"
            )
        request = requested(incident, choice)
        unusable = why_unusable(request)
        if unusable:
            return f"{unusable}: send a prompt of your own, or retry from the program that made it"
        model = choice.model or request.model
        if self.find(request.replace(model=model)) is None:
            return (
                f"no client for {model or 'its agent'} is configured: start the service with the model's API key set"
                " (ANTHROPIC_API_KEY, OPENAI_API_KEY), or retry from the program that made the request"
            )
        return ""

    def check(self, incident: Incident, choice: RetryChoice = PLAIN) -> None:
        """Raise a problem if this incident's call cannot be made again; it names the field that is missing."""
        why_not = self.why_not(incident, choice)
        if why_not:
            is_key_missing = API_KEY in self.needs(incident) and not choice.api_key
            raise ApiProblem(409, why_not, field=API_KEY if is_key_missing else None)

    def start(self, incident: Incident, intervention: Intervention, policy: Policy, choice: RetryChoice = PLAIN) -> str:
        """Make the call again in the background, as a new incident of the same session; return its id."""
        self.check(incident, choice)
        name = new_incident_id(self.journal, incident)
        way_in = way_in_of(self.journal, incident)
        if way_in == GATEWAY:
            self.gateways.start(incident, intervention, choice, name)
        elif way_in == COMMAND:
            self.commands.start(incident, intervention, name)
        else:
            self._start_client(incident, intervention, policy, choice, name)
        return name

    def _start_client(
        self, incident: Incident, intervention: Intervention, policy: Policy, choice: RetryChoice, name: str
    ) -> None:
        request = requested(incident, choice)
        first = intervention.apply_to(request)
        replayer = self.find(first)
        assert replayer is not None  # noqa: S101  # checked by why_not
        attempt = PaidReplay(self.spending, replayer, name, policy, incident.terms.session, incident.terms.project)
        attempt.reserve(first)
        ports = {
            "policy": policy,
            "journal": ProjectJournal(self.journal, incident.terms.project),
            "session": Session(intervention.model or request.model, incident.terms.session),
            "incident_id": name,
            "intervention": intervention,  # the incident keeps the request without it, for the next retry
        }
        work = (attempt, request, ports)
        threading.Thread(target=self._recover, args=work, name=f"rung-{name}", daemon=True).start()

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


def original_request(incident: Incident) -> Request | None:
    """Return the request as its caller gave it, without what rungs added, on the model that it is on now."""
    first, last = incident.first_request, incident.request
    return first if first is None or last is None else first.replace(model=last.model, agent=last.agent)


def requested(incident: Incident, choice: RetryChoice) -> Request:
    """Return the request that a retry begins with: the original one, or the person's prompt where that is not recorded."""
    request = original_request(incident) or Request()
    if choice.mode == "prompt" and why_unusable(request):
        return request.replace(prompt=choice.prompt, messages=())
    return request


def why_unusable(request: Request) -> str:
    """Return why a recorded request is not the one that was made; empty if it is."""
    content = json.dumps([request.prompt, list(request.messages)], default=str)
    if not (request.prompt or request.messages):
        return "the request was not recorded"
    if TRUNCATION_MARK in content:
        return "the request was too long to be recorded completely"
    return "the request contained a secret, which is not recorded" if SECRET_MARK in content else ""


def error_context(incident: Incident, policy: Policy) -> str:
    """Return the prompt that tells the next attempt about the last failure."""
    if incident.failure is None or incident.request is None:
        return incident.request.prompt if incident.request is not None else ""
    text = render("context.error", incident, incident.failure, policy.prompts)
    return text if incident.first_request is not None and incident.first_request.prompt else without_task(text)
