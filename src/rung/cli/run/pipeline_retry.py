"""Stages of a pipeline that have failed: recorded for a retry, and tried again as a person asks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rung.cli.run.parked_call import ParkedCall
from rung.cli.run.recorded_command import prompt_of_order
from rung.core.domain.incident import Incident
from rung.engine.session import Session
from rung.store.recorded_calls import COMMAND, RecordedCall, record_call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rung.core.domain.request import Request
    from rung.engine.recovery_arguments import RunPorts
    from rung.pipeline.runner import PipelineRun
    from rung.store.journal.journal import Journal
    from rung.store.replay_orders import ReplayOrder
    from rung.wiring.recording import RecordingSettings


def resuming_call(run_id: str, options: Mapping[str, Any]) -> ParkedCall:
    """Return the call of this process, as one that resumes the run."""
    given = () if options["run_id"] or options["resume"] else ("--resume", run_id)
    return ParkedCall.of_this_process(words=(*sys.argv[1:], *given))


def record_failed_stages(
    work: PipelineRun, journal: Journal, options: Mapping[str, Any], settings: RecordingSettings
) -> None:
    """Record the command that tries the failed stages again and keeps those that have passed, unless settings forbid it."""
    if not settings.requests:
        return
    content = resuming_call(work.run_id, options).to_table()
    for outcome in work.outcomes.values():
        if not outcome.ok:
            session = Incident.of(outcome.events).terms.session
            record_call(journal, session, outcome.id, RecordedCall(COMMAND, content), settings.keep_seconds)


def ports_of_order(journal: Journal, order: ReplayOrder) -> Callable[[str, Request], RunPorts]:
    """Return a function that gives the ordered run its session and what the person asks of its first attempt."""

    def ports(run: str, request: Request) -> RunPorts:
        if run != order.id:
            return {}
        prompt = prompt_of_order(journal, order, request.prompt)
        return {"session": Session(id=order.session), "intervention": order.intervention._replace(prompt=prompt)}

    return ports
