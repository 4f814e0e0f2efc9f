"""Ways to make a call again: by a client of this process, by a gateway, or as a command on this machine."""

from __future__ import annotations

import shlex
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from rung.core.domain.errors import SealedElsewhere, StoreDamaged
from rung.core.domain.outcome import SUCCESS_STATUSES
from rung.core.domain.reporting_agents import CONTINUED_BY, HOOKS_POLICY, MCP_AGENT
from rung.core.policy.call_costs import RequestSize
from rung.core.policy.spend_estimates import named_output_limit
from rung.core.text.json_in_text import parse_json_object
from rung.service.api_problem import ApiProblem
from rung.store.recorded_calls import COMMAND, GATEWAY, RecordedCall, recorded_call, recorded_way_in
from rung.store.replay_orders import ReplayOrder, present_upstreams, send_order
from rung.store.stage_runs import NUMBER_MARK, next_run_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.incident import Incident
    from rung.core.recovery.interventions import Intervention
    from rung.store.journal.journal import Journal

API_KEY: Final = "apiKey"
_NOT_KEPT: Final = "recording is off ([recording] requests), it was larger than max_bytes, or its time is over"


class RetryChoice(NamedTuple):
    """Retry that a person asks for: how, on which model, with which prompt, and with which key where one is missing."""

    mode: str = "plain"
    model: str = ""
    prompt: str = ""
    api_key: str = ""


PLAIN: Final = RetryChoice()


class CommandRunner(Protocol):
    """Runs recorded commands of `rung run` on this machine."""

    def why_not(self, content: Mapping[str, Any], session: str) -> str:
        """Return why this command cannot be run here; empty if it can."""
        ...

    def start(self, content: Mapping[str, Any], order: ReplayOrder) -> None:
        """Run the command again, with the order in its environment."""
        ...


def way_in_of(journal: Journal, incident: Incident) -> str:
    """Return the way in that made an incident's call: the gateway, `rung run`, or empty for a program."""
    way_in = recorded_way_in(journal, incident.terms.session, incident.id)
    params = incident.first_request.params if incident.first_request is not None else {}
    if way_in:
        return way_in
    return GATEWAY if "wire" in params and "body" in params else COMMAND if "stdin" in params else ""


def pipeline_run(incident: Incident) -> str:
    """Return the run of the pipeline that an incident is a stage of; empty if it is none."""
    task = incident.first_request.task if incident.first_request is not None else ""
    run, _, stage = incident.id.rpartition("/")
    return run if "/" in task and stage.partition(NUMBER_MARK)[0] == task.rpartition("/")[2] else ""


def agent_reason(incident: Incident) -> str:
    """Return why Rung cannot repeat what an agent with a loop of its own has reported; empty for other incidents.

    One that hooks have reported can be repeated where the command that continues its session is recorded.
    """
    request, session = incident.first_request, incident.terms.session
    if request is not None and request.agent == MCP_AGENT:
        return "an agent reported it over MCP, and only this agent can repeat its task: retry in the agent"
    if incident.terms.policy != HOOKS_POLICY or request is None:
        return ""
    continued_by = CONTINUED_BY.get(request.agent, "")
    how = f": {continued_by} {shlex.quote(session)}" if continued_by else ""
    if incident.status is None:
        return f"its agent has not reported the end of the session: continue it there{how}"
    return f"its agent's session was not recorded: {_NOT_KEPT}; continue it there{how}"


def new_incident_id(journal: Journal, incident: Incident) -> str:
    """Return the id of the incident that makes the call of another one again. A stage of a pipeline names its own runs."""
    if pipeline_run(incident):
        run, _, stage = incident.id.rpartition("/")
        return next_run_id(journal, f"{run}/{stage.partition(NUMBER_MARK)[0]}")
    return f"again-{uuid.uuid4().hex[:12]}"


class GatewayRetries:
    """Calls of the gateway: an order that a running gateway carries out with its own upstream and budgets."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def size_of(self, incident: Incident) -> RequestSize:
        """Return the size of a recorded request, as far as it is recorded."""
        try:
            call = find_call(self._journal, incident)
        except ApiProblem:
            return RequestSize()
        if call is None:
            return RequestSize()
        body = str(call.content["body"])
        return RequestSize(len(body), named_output_limit(parse_json_object(body) or {}))

    def needs(self, incident: Incident) -> tuple[str, ...]:
        """Return the fields that the person must give: a key, where the client used its own, which is not stored."""
        try:
            call = find_call(self._journal, incident)
        except ApiProblem:
            return ()
        upstreams = present_upstreams(self._journal, time.time())
        if call is None or call.content["upstream"] not in upstreams:
            return ()
        return (API_KEY,) if call.content["client_key"] and not upstreams[call.content["upstream"]] else ()

    def why_not(self, incident: Incident, choice: RetryChoice) -> str:
        """Return why the call cannot be made again; empty if it can."""
        upstreams = present_upstreams(self._journal, time.time())
        if not upstreams:
            return "no gateway runs on this journal: start `rung serve` or `rung gateway` with it"
        try:
            call = find_call(self._journal, incident)
        except ApiProblem as problem:
            return problem.detail
        if call is None:
            if choice.mode == "prompt":
                return ""
            return f"the request was not recorded: {_NOT_KEPT}; send a prompt of your own, or retry from the client"
        upstream = str(call.content["upstream"])
        if upstream not in upstreams:
            return f"no running gateway has the upstream {upstream!r}"
        if API_KEY in self.needs(incident) and not choice.api_key:
            return (
                f"the client used its own key, which is not stored: give a key for {upstream} with the retry,"
                f" or set `key_env` of [gateway.upstreams.{upstream}]"
            )
        return ""

    def start(self, incident: Incident, intervention: Intervention, choice: RetryChoice, name: str) -> None:
        """Leave the order for a gateway."""
        request = incident.first_request
        is_recorded = find_call(self._journal, incident) is not None
        wire = "" if is_recorded or request is None else str(request.params.get("wire", ""))
        model = intervention.model or (request.model if request is not None else "")
        intervention = intervention if is_recorded else intervention._replace(model=model)
        order = ReplayOrder(
            name, incident.id, incident.terms.session, incident.terms.project, intervention, choice.api_key, wire
        )
        send_order(self._journal, order, time.time())


class CommandRetries:
    """Commands of `rung run`: run again by this process, where it may run commands. None are taken from a request."""

    def __init__(self, journal: Journal, runner: CommandRunner | None = None) -> None:
        self._journal = journal
        self.runner = runner

    def why_not(self, incident: Incident, choice: RetryChoice) -> str:
        """Return why the command cannot be run again; empty if it can."""
        by_hand = f"on the machine that ran it, run: rung retry {incident.terms.session}"
        if incident.status in SUCCESS_STATUSES:
            return "the command has succeeded: run it again with `rung run`"
        try:
            call = find_call(self._journal, incident)
        except ApiProblem as problem:
            return f"{problem.detail}; or {by_hand}"
        if call is None:
            return f"the command was not recorded: {_NOT_KEPT}; run it again with `rung run`"
        if choice.model and not any("{model}" in word for word in call.content["words"]):
            return "the command names its model itself, without {model}: it cannot be run with another one"
        if self.runner is None:
            return f"this service runs no commands (`rung serve --run-commands` allows it); {by_hand}"
        return self.runner.why_not(call.content, incident.terms.session)

    def start(self, incident: Incident, intervention: Intervention, name: str) -> None:
        """Run the command again."""
        call = find_call(self._journal, incident)
        assert call is not None and self.runner is not None  # noqa: S101, PT018  # checked by why_not
        order = ReplayOrder(name, incident.id, incident.terms.session, incident.terms.project, intervention)
        self.runner.start(call.content, order)


def find_call(journal: Journal, incident: Incident) -> RecordedCall | None:
    """Return the recorded call of an incident; None if none is kept. One under another key is a problem."""
    try:
        return recorded_call(journal, incident.terms.session, incident.id)
    except (SealedElsewhere, StoreDamaged) as error:
        raise ApiProblem(409, str(error)) from None
