"""An event of the journal in words: a mark, a subject, the rest, and what more there is to say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import from_json
from rung.core.domain.failures import first_line
from rung.core.domain.ladder import DOES
from rung.core.text.units import money, took

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    _Note: TypeAlias = (
        ev.Changed
        | ev.Hinted
        | ev.Skipped
        | ev.StepCompleted
        | ev.Answered
        | ev.Ordered
        | ev.CheckpointTaken
        | ev.RolledBack
        | ev.ModelRestored
    )


class EventText(NamedTuple):
    """One event: `mark` is one of the marks of progress; `more` is for whoever looks closer."""

    mark: str
    subject: str
    text: str
    more: tuple[str, ...] = ()
    time: str = ""  # it took


def told(body: Mapping[str, Any], rungs: Sequence[str], number: int = 0) -> EventText:
    """What the JSON of an event says; one that only a newer Rung knows is named at least."""
    try:
        return narrate(from_json(body), rungs, number)
    except ConfigError as error:
        return EventText("note", str(body.get("name", "?")), f"cannot be read by this Rung: {error}")


def narrate(event: ev.Event, rungs: Sequence[str], number: int = 0) -> EventText:
    """What happened. `rungs` are the ladder's names, `number` is the attempt's."""
    match event:
        case ev.Opened(terms=terms, request=request):
            on = request.model or request.agent if request is not None else ""
            return EventText("note", "opened", f"ladder {terms.ladder}{', ' + on if on else ''}")
        case ev.AttemptFailed(failure=failure):
            subject = f"attempt {number}" if event.made else "not made"
            text = f"{failure.kind}: {first_line(failure.message)}"
            return EventText("bad", subject, text, _about_failure(event), took(event.seconds))
        case ev.AttemptSucceeded(seconds=seconds, dollars=dollars):
            spent = (f"cost {money(dollars)}",) if dollars else ()
            return EventText("good", f"attempt {number}", "good", spent, took(seconds))
        case ev.Decided(decision=decision):
            return _decided(decision, rungs)
        case ev.Cancelled(reason=reason):
            return EventText("end", "stopped", first_line(reason))
        case ev.Closed(status=status, reason=reason):
            return EventText("end", status.value, first_line(reason))
        case ev.Crashed(what=what, error=error):
            return EventText("bad", "crashed", f"{what}, and was ignored: {first_line(error)}")
    return _noted(event, rungs)


def _noted(event: _Note, rungs: Sequence[str]) -> EventText:
    """What happened by the way."""
    match event:
        case ev.Changed(request=request, fields=fields, prompt=prompt):
            more = (f"told: {first_line(request.recovery, 300)}",) if request.recovery else ()
            return EventText("note", "changed", f"{', '.join(fields)}{f' by prompt {prompt}' if prompt else ''}", more)
        case ev.Hinted(reason=reason):
            return EventText("note", "remembered", reason)
        case ev.Skipped(rung=rung, reason=reason):
            return EventText("note", "skipped", f"{_rung(rung, rungs)}: {reason}")
        case ev.StepCompleted(step=step):
            return EventText("note", "step done", first_line(step))
        case ev.Answered(option=option):
            return EventText("note", "answered", option)
        case ev.Ordered(action=action, by=by, model=model, prompt=prompt):
            how = f"{' on ' + model if model else ''}{', with a prompt of their own' if prompt else ''}"
            return EventText("note", "ordered", f"{action}{how}, by {by or 'a person'}")
        case ev.CheckpointTaken(rung=rung, reference=reference):
            return EventText("note", "checkpoint", f"{reference}, before {_rung(rung, rungs)}")
        case ev.RolledBack(reference=reference):
            return EventText("note", "rolled back", f"to {reference}")
        case ev.ModelRestored(model=model, agent=agent):
            return EventText("note", "back to", model or agent or "the first one")


def _about_failure(event: ev.AttemptFailed) -> tuple[str, ...]:
    failure = event.failure
    repeat = "may be repeated" if failure.retryable else "not to be repeated as it was"
    facts = [f"rule {failure.rule}", repeat]
    if failure.evidence.status is not None:
        facts.append(f"status {failure.evidence.status}")
    if failure.retry_after is not None:
        facts.append(f"come back in {took(failure.retry_after)}")
    if event.dollars:
        facts.append(f"cost {money(event.dollars)}")
    return (", ".join(facts), *(() if event.may_retry else ("the retry budget had no room",)))


def _decided(decision: ev.Decision, rungs: Sequence[str]) -> EventText:
    name = _rung(decision.rung, rungs)
    why = (f"because: {first_line(decision.reason)}",) if decision.reason else ()
    passed = tuple(f"passed over {_rung(rung, rungs)}: {reason}" for rung, reason in decision.skipped)
    match decision:
        case ev.Repeat(wait=wait):
            return EventText("next", name, f"again in {took(wait)}" if wait else "again now", why + passed)
        case ev.Change(action=action, wait=wait):
            pause = f", in {took(wait)}" if wait else ""
            return EventText("climb", name, f"{DOES[action]}{pause}", why + passed)
        case ev.HandOver(model=model, agent=agent, estimate=estimate):
            cost = "" if estimate is None else f", about {money(estimate)}"
            return EventText("climb", name, f"hand over to {agent or model}{cost}", why + passed)
        case ev.Ask(question=question, options=options):
            choices = tuple(f"{option.id}: {option.label}" for option in options)
            return EventText("climb", "ask", first_line(question), choices + passed)
        case ev.Finish(status=status):
            return EventText("end", "finish", status.value, passed)


def _rung(index: int, rungs: Sequence[str]) -> str:
    return rungs[index] if 0 <= index < len(rungs) else f"rung {index}"
