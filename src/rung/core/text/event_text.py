"""Describe an event of the journal for people: a mark, a subject, a text and details."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import from_json
from rung.core.domain.failures import error_line, first_line
from rung.core.domain.ladder import ACTION_DESCRIPTIONS
from rung.core.text.moments import format_moment, format_span
from rung.core.text.printable import printable
from rung.core.text.units import format_dollars, format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo
    from typing import Any, TypeAlias

    _Note: TypeAlias = (
        ev.Abandoned
        | ev.Changed
        | ev.Hinted
        | ev.Learned
        | ev.Skipped
        | ev.StepCompleted
        | ev.Answered
        | ev.Ordered
        | ev.CheckpointTaken
        | ev.Charged
        | ev.RolledBack
        | ev.ModelRestored
        | ev.SessionSwitched
    )


class EventText(NamedTuple):
    """Description of one event: `mark` selects the symbol in front of it; `more` holds details."""

    mark: str
    subject: str
    text: str
    more: tuple[str, ...] = ()
    time: str = ""  # duration


def describe_json(
    body: Mapping[str, Any], rungs: Sequence[str], number: int = 0, zone: tzinfo | None = None
) -> EventText:
    """Describe the JSON object of an event; an event of a newer version is described by its name alone."""
    try:
        return describe_event(from_json(body), rungs, number, zone)
    except ConfigError as error:
        name = printable(str(body.get("name", "?")))
        return EventText("note", name, f"cannot be read by this version of Rung: {printable(str(error))}")


def describe_event(event: ev.Event, rungs: Sequence[str], number: int = 0, zone: tzinfo | None = None) -> EventText:
    """Describe an event, without control sequences. `rungs` name the ladder's rungs, `number` is that of the attempt.

    Times are those of `zone`, or UTC.
    """
    mark, subject, text, more, time = _describe(event, rungs, number, zone)
    return EventText(mark, printable(subject), printable(text), tuple(map(printable, more)), time)


def _describe(event: ev.Event, rungs: Sequence[str], number: int, zone: tzinfo | None) -> EventText:
    match event:
        case ev.Opened(terms=terms, request=request):
            target = request.model or request.agent if request is not None else ""
            return EventText("note", "opened", f"ladder {terms.ladder}{', ' + target if target else ''}")
        case ev.AttemptFailed(failure=failure):
            subject = f"attempt {number}" if event.made else "not made"
            text = f"{failure.kind}: {error_line(failure)}"
            return EventText("bad", subject, text, _failure_details(event), format_duration(event.seconds))
        case ev.AttemptSucceeded(seconds=seconds, dollars=dollars):
            cost = (f"cost {format_dollars(dollars)}",) if dollars else ()
            return EventText("good", f"attempt {number}", "good", cost, format_duration(seconds))
        case ev.Decided(at=at, decision=ev.Repeat(until=float(until), parked=True) as decision):
            described = _describe_decision(decision, rungs)
            text = f"parked until {format_moment(until, at, zone)}, in {format_span(until - at)}"
            return described._replace(text=text)
        case ev.Decided(at=at, decision=ev.Repeat(wait=wait, until=float(until)) as decision):
            text = f"waiting for the service, up to {format_span(until - at)}, next try in {format_duration(wait)}"
            return _describe_decision(decision, rungs)._replace(text=text)
        case ev.Decided(decision=decision):
            return _describe_decision(decision, rungs)
        case ev.Unparked():
            return EventText("note", "unparked", "the work is taken up")
        case ev.AgentSessionOpened(program=program, session=session, continued=continued):
            return EventText("note", "session", f"{'continues' if continued else 'new'} session {session} of {program}")
        case ev.Cancelled(reason=reason):
            return EventText("end", "stopped", first_line(reason))
        case ev.Closed(status=status, reason=reason):
            return EventText("end", status.value, first_line(reason))
        case ev.Crashed(what=what, error=error):
            return EventText(
                "bad",
                "crashed",
                f"{what}, {'result not accepted' if what == 'check' else 'ignored'}: {first_line(error)}",
            )
    return _describe_note(event, rungs)


def _describe_learning(event: ev.Hinted | ev.Learned, rungs: Sequence[str]) -> EventText:
    if isinstance(event, ev.Hinted):
        return EventText("note", "remembered", event.reason)
    own = "; the ladder's own order is taken, to measure them again" if event.explored else ""
    skips = tuple(f"{_rung_name(skip.rung, rungs)} from try {skip.number}: {skip.reason}" for skip in event.skips)
    return EventText("note", "learned", f"tries to leave out after {event.kind}{own}", skips)


def _describe_note(event: _Note, rungs: Sequence[str]) -> EventText:
    """Describe an event that is neither an attempt, a decision nor an end."""
    match event:
        case ev.Abandoned(approach=approach, cause=cause):
            what = f"cause: {first_line(cause)}" if cause else "the approach"
            return EventText("note", "abandoned", what, (f"approach: {first_line(approach, 300)}",))
        case ev.Changed(request=request, fields=fields, prompt=prompt):
            more = (f"recovery text: {first_line(request.recovery, 300)}",) if request.recovery else ()
            return EventText("note", "changed", f"{', '.join(fields)}{f' by prompt {prompt}' if prompt else ''}", more)
        case ev.Hinted() | ev.Learned():
            return _describe_learning(event, rungs)
        case ev.Skipped(rung=rung, reason=reason):
            return EventText("note", "skipped", f"{_rung_name(rung, rungs)}: {reason}")
        case ev.StepCompleted(step=step):
            return EventText("note", "step done", first_line(step))
        case ev.Answered(option=option):
            return EventText("note", "answered", option)
        case ev.Ordered():
            return _describe_order(event)
        case ev.CheckpointTaken(rung=rung, reference=reference):
            return EventText("note", "checkpoint", f"{reference}, before {_rung_name(rung, rungs)}")
        case ev.Charged(dollars=dollars):
            return EventText("note", "cost", f"{format_dollars(dollars)} more, which became known later")
        case ev.RolledBack(reference=reference):
            return EventText("note", "rolled back", f"to {reference}")
        case ev.ModelRestored() | ev.SessionSwitched():
            return _describe_target(event)


def _describe_target(event: ev.ModelRestored | ev.SessionSwitched) -> EventText:
    target = event.model or event.agent
    if isinstance(event, ev.ModelRestored):
        return EventText("note", "back to", target or "the first model")
    return EventText("note", "session", f"is on {target} already")


def _describe_order(event: ev.Ordered) -> EventText:
    if event.action == "suspend":
        return EventText("note", "suspended", f"by {event.by}")
    how = f"{' on ' + event.model if event.model else ''}{', with a new prompt' if event.prompt else ''}"
    return EventText("note", "ordered", f"{event.action}{how}, by {event.by or 'a person'}")


def _failure_details(event: ev.AttemptFailed) -> tuple[str, ...]:
    failure = event.failure
    facts = [f"rule {failure.rule}", "retryable" if failure.retryable else "not retryable"]
    if failure.evidence.status is not None:
        facts.append(f"status {failure.evidence.status}")
    if failure.retry_after is not None:
        facts.append(f"retry after {format_duration(failure.retry_after)}")
    if event.dollars:
        facts.append(f"cost {format_dollars(event.dollars)}")
    frames = [line for line in failure.evidence.stack.splitlines() if line.startswith("File ")]
    raised = (f"raised in {frames[-1]}",) if frames else ()
    return (", ".join(facts), *raised, *(() if event.may_retry else ("the shared retry budget was spent",)))


def _target_text(model: str, agent: str) -> str:
    """Return the target of a handover: `large at backup`, where `backup` is the upstream or the agent.

    A model that names its upstream, such as `backup/large`, says it all: the agent is then the one that was left.
    """
    if not model or not agent:
        return model or agent
    return model if "/" in model else f"{model} at {agent}"


def _describe_decision(decision: ev.Decision, rungs: Sequence[str]) -> EventText:
    name = _rung_name(decision.rung, rungs)
    why = (f"because: {first_line(decision.reason)}",) if decision.reason else ()
    skipped = tuple(f"skipped {_rung_name(rung, rungs)}: {reason}" for rung, reason in decision.skipped)
    match decision:
        case ev.Repeat(wait=wait):
            return EventText("next", name, f"again in {format_duration(wait)}" if wait else "again now", why + skipped)
        case ev.Change(action=action, wait=wait):
            pause = f", in {format_duration(wait)}" if wait else ""
            return EventText("climb", name, f"{ACTION_DESCRIPTIONS[action]}{pause}", why + skipped)
        case ev.HandOver(model=model, agent=agent, estimate=estimate):
            cost = "" if estimate is None else f", about {format_dollars(estimate)}"
            return EventText("climb", name, f"hand over to {_target_text(model, agent)}{cost}", why + skipped)
        case ev.Ask(question=question, options=options):
            choices = tuple(f"{option.id}: {option.label}" for option in options)
            return EventText("climb", "ask", first_line(question), choices + skipped)
        case ev.Finish(status=status):
            return EventText("end", "finish", status.value, skipped)


def _rung_name(index: int, rungs: Sequence[str]) -> str:
    return rungs[index] if 0 <= index < len(rungs) else f"rung {index}"
