"""Incident routes: list, detail, answer, wake and cancel."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Query

from rung.core.domain import events as ev
from rung.core.domain.ladder import ACTION_DESCRIPTIONS, WAITING_ACTIONS
from rung.core.domain.level_record import level_records
from rung.core.domain.outcome import build_outcome
from rung.core.domain.skipped_rungs import skipped_rungs
from rung.core.policy.presets import LADDERS
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.core.recovery.written_answer import WORDS_OPTION, is_written_answer, written_answer
from rung.core.text.event_text import describe_event
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.idempotency import IdempotencyKey, run_idempotent
from rung.service.incident_status import LiveStatus, answer_note, live_status, nobody_waits
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.replay import load_incident
from rung.service.schemas.base import ActionResult, Moment
from rung.service.schemas.incidents import (
    AnswerIn,
    AskOption,
    AskOut,
    FieldChange,
    IncidentDetail,
    IncidentOut,
    IncidentPage,
    RungOut,
    ScheduledRetry,
    TimelineEntry,
    WakeIn,
)
from rung.store.orders import order_recovery
from rung.store.queries import listing
from rung.store.queries.listing_rows import IncidentRow
from rung.store.settings import record_audit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.incident import Incident

router = APIRouter(prefix="/api/incidents", tags=["incidents"], responses=PROBLEM_RESPONSES)

NO_NUL: Final = r"^[^\x00]*$"
MAX_FIELD_CHARS: Final = 20_000  # of a request field in a diff
Id = Annotated[str, Path(min_length=1, max_length=300, pattern=NO_NUL)]


@router.get("")
def list_incidents(
    context: Context,
    _: Reader,
    status: Annotated[str, Query(max_length=20, pattern=NO_NUL)] = "",
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    session: Annotated[str, Query(max_length=300, pattern=NO_NUL)] = "",
    model: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    kind: Annotated[str, Query(max_length=50, pattern=NO_NUL)] = "",
    rung: Annotated[str, Query(max_length=100, pattern=NO_NUL)] = "",
    fingerprint: Annotated[str, Query(max_length=100, pattern=NO_NUL)] = "",
    tool: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    prompt: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    pattern: Annotated[str, Query(max_length=500, pattern=NO_NUL)] = "",
    q: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    since: Moment = None,
    until: Moment = None,
    troubled: bool = False,
    cursor: Annotated[str | None, Query(max_length=1_000)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> IncidentPage:
    """Incidents, newest first."""
    page = listing.incidents(
        context.journal, status=status or None, project=project, session=session or None, model=model or None,
        kind=kind or None, rung=rung or None, fingerprint=fingerprint or None, tool=tool or None, prompt=prompt or None,
        pattern=pattern or None, text=q or None, since=since, until=until, troubled=troubled, limit=limit, after=cursor or "",
    )  # fmt: skip
    items = [incident_out(row) for row in page.rows]
    return IncidentPage(items=items, next_cursor=page.after or None, total=page.total)


@router.get("/{incident:path}")
def one_incident(incident: Id, context: Context, _: Reader) -> IncidentDetail:
    """One incident: its ladder, timeline, request changes and outcome."""
    found, events = load_incident(context.journal, incident)
    row = listing.incident(context.journal, incident)
    if row is None:
        raise ApiProblem(404, f"there is no incident {incident!r}")
    now = live_status(found, events) if found.status is None else LiveStatus("")
    result = context.journal.runs.received(f"result/{incident}")
    return IncidentDetail(
        **incident_out(row).model_dump(),
        rungs=rung_states(found, events),
        timeline=timeline(events),
        changes=_changes(events),
        outcome=_outcome(found, events),
        levels=level_records(events, LADDERS.get(found.terms.ladder, LADDERS["task"])),
        ask=next(iter(asks(context, incident)), None),
        retry=ScheduledRetry.of_attempt(now.retry),
        result=result.get("text") if isinstance(result, dict) else None,
    )


@router.post("/{incident:path}/answer")
def answer(
    incident: Id, body: AnswerIn, context: Context, principal: Actor, key: IdempotencyKey = None
) -> ActionResult:
    """Answer the question an incident waits for; the recovery continues immediately."""
    return run_idempotent(
        context,
        key,
        principal,
        f"answer {incident}",
        body,
        ActionResult,
        lambda: _answer(context, incident, body, principal.name),
    )


def _answer(context: AppContext, incident: str, body: AnswerIn, by: str) -> ActionResult:
    waiting = next(iter(asks(context, incident)), None)
    if waiting is None:
        load_incident(context.journal, incident)
        raise ApiProblem(409, "the incident does not wait for an answer: it was answered already, or it has ended")
    option = _chosen(body, [option.id for option in waiting.options])
    context.journal.runs.send(f"answer/{incident}/{waiting.n}", {"option": option, "by": by, "note": body.note})
    record_audit(context.journal, by, "answer", f"incident/{incident}", {"option": body.option, "note": body.note})
    return ActionResult(how="answered", incident=incident, note=_answer_note(context, waiting))


def _answer_note(context: AppContext, waiting: AskOut) -> str:
    is_owned = context.journal.runs.is_owned(waiting.incident)
    return answer_note(waiting.incident, waiting.at, time.time(), is_owned=is_owned)


def _chosen(body: AnswerIn, allowed: list[str]) -> str:
    """Return the chosen option. An answer in words is the note, or follows the option's name: `answer:TEXT`."""
    in_words = WORDS_OPTION.id in allowed
    if in_words and body.option == WORDS_OPTION.id:
        if not body.note.strip():
            raise ApiProblem(422, "note: must hold the answer in words", field="note")
        return written_answer(body.note)
    if body.option not in allowed and not (in_words and is_written_answer(body.option)):
        raise ApiProblem(
            422, f"option: {body.option!r} is invalid; must be one of {', '.join(allowed)}", field="option"
        )
    return body.option


@router.post("/{incident:path}/wake")
def wake(incident: Id, body: WakeIn, context: Context, principal: Actor, key: IdempotencyKey = None) -> ActionResult:
    """Wake a parked recovery before its limit reopens, on its model or on another one."""
    return run_idempotent(
        context,
        key,
        principal,
        f"wake {incident}",
        body,
        ActionResult,
        lambda: _wake(context, incident, body.model or "", principal.name),
    )


def _wake(context: AppContext, incident: str, model: str, by: str) -> ActionResult:
    found, _ = load_incident(context.journal, incident)
    if found.parked_until is None:
        raise ApiProblem(409, "the incident is not parked" if found.status is None else "the incident has ended")
    listed = context.policies.pick(found.terms.project).model(model)
    context.replayers.spending.order(
        incident, found.terms.session, found.terms.project, listed.cost if listed is not None else 0.0
    )
    order = Intervention(InterventionType.RETRY, by, model)
    if not order_recovery(context.journal, incident, order, time.time()):
        raise ApiProblem(409, "the incident has ended")
    record_audit(context.journal, by, "wake", f"incident/{incident}", {"model": model})
    return ActionResult(how="ordered", incident=incident, note="the recovery goes on at once")


@router.post("/{incident:path}/cancel")
def cancel(incident: Id, context: Context, principal: Actor) -> ActionResult:
    """Cancel a recovery: immediately if it waits, otherwise after the attempt in progress."""
    found, events = load_incident(context.journal, incident)
    if found.status is not None:
        raise ApiProblem(409, f"the incident has ended: {found.status}")
    waiting = next(iter(asks(context, incident)), None)
    if waiting is not None and any(option.id == "stop" for option in waiting.options):
        context.journal.runs.send(f"answer/{incident}/{waiting.n}", {"option": "stop", "by": principal.name})
        record_audit(context.journal, principal.name, "cancel", f"incident/{incident}", {})
        return ActionResult(how="ordered", incident=incident, note=waiting.note)
    order = Intervention(InterventionType.CANCEL, principal.name)
    if not order_recovery(context.journal, incident, order, time.time()):
        raise ApiProblem(409, "the incident has ended")
    record_audit(context.journal, principal.name, "cancel", f"incident/{incident}", {})
    now = live_status(found, events).status
    return ActionResult(
        how="ordered",
        incident=incident,
        note="" if now in ("retrying", "parked") else "the recovery ends after the attempt in progress",
    )


# -- conversion to schemas ----------------------------------------------------------------------------


def incident_out(row: IncidentRow) -> IncidentOut:
    """Return the response model of a row."""
    values = {**row._asdict(), "parked_until": row.parked_until}
    return IncidentOut(**{name: values[name] for name in IncidentOut.model_fields})


def asks(context: AppContext, incident: str | None = None, limit: int = 100) -> list[AskOut]:
    """Return the open questions of one incident or of all, without those answered but not yet delivered."""
    found = listing.asks(context.journal, incident=incident, limit=limit)
    return [
        AskOut(
            incident=row.incident,
            n=row.n,
            at=row.at,
            project=row.project,
            question=row.question,
            options=[AskOption(id=option, label=label) for option, label in row.options],
            estimate=row.estimate,
            note=nobody_waits(row.incident, is_owned=context.journal.runs.is_owned(row.incident)),
        )
        for row in found
        if context.journal.runs.received(f"answer/{row.incident}/{row.n}") is None
    ]


def rung_states(incident: Incident, events: Sequence[ev.Event]) -> list[RungOut]:
    """Return the incident's ladder with the state, tries, time and cost of each rung."""
    ladder = LADDERS.get(incident.terms.ladder)
    known = {rung.name: rung for rung in ladder.rungs} if ladder is not None else {}
    waiting = {action.value: action for action in WAITING_ACTIONS}  # the policy adds these rungs to the ladder
    used, times, spent, skipped, at = _by_rung(events)
    reasons = dict(skipped_rungs(events))
    found = []
    for index, name in enumerate(incident.terms.rungs):
        rung = known.get(name)
        action = rung.action if rung is not None else waiting.get(name)
        state = "ahead"
        if index in used:
            state = "here" if index == at and incident.status is None else "climbed"
        elif index in skipped:
            state = "skipped"
        found.append(
            RungOut(
                name=name,
                action=action.value if action is not None else "",
                about=ACTION_DESCRIPTIONS[action] if action is not None else "",
                tries=rung.tries if rung is not None else None,
                seconds=rung.seconds if rung is not None else None,
                state=state,  # type: ignore[arg-type]  # a literal of RungOut.state
                skipped=reasons.get(index, ""),
                used=used.get(index, 0),
                took=times.get(index, 0.0),
                dollars=spent.get(index, 0.0),
            )
        )
    return found


def _by_rung(
    events: Sequence[ev.Event],
) -> tuple[dict[int, int], dict[int, float], dict[int, float], set[int], int]:
    """Return tries, seconds and dollars by rung, the skipped rungs, and the current rung."""
    used: dict[int, int] = {}
    times: dict[int, float] = {}
    spent: dict[int, float] = {}
    skipped: set[int] = set()
    at = -1
    for event in events:
        if isinstance(event, ev.Decided):
            at = event.decision.rung
            used[at] = used.get(at, 0) + 1
            skipped |= {index for index, _ in event.decision.skipped}
        elif isinstance(event, ev.Skipped):
            skipped.add(event.rung)
        elif isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded) and at >= 0:
            times[at] = times.get(at, 0.0) + event.seconds
            spent[at] = spent.get(at, 0.0) + event.dollars
    return used, times, spent, skipped, at


def timeline(events: Sequence[ev.Event]) -> list[TimelineEntry]:
    """Return the events as timeline entries."""
    rungs: tuple[str, ...] = ()
    number, found = 0, []
    for n, event in enumerate(events):
        if isinstance(event, ev.Opened):
            rungs = event.terms.rungs
        number += isinstance(event, ev.AttemptSucceeded) or (isinstance(event, ev.AttemptFailed) and event.made)
        entry = describe_event(event, rungs, number)
        found.append(
            TimelineEntry(
                n=n,
                at=event.at,
                name=type(event).__name__,
                mark=entry.mark,
                subject=entry.subject,
                text=entry.text + (f" ({entry.time})" if entry.time else ""),
                more=list(entry.more),
            )
        )
    return found


def _changes(events: Sequence[ev.Event]) -> list[FieldChange]:
    """Return the request fields that each rung changed."""
    made = [(n, event) for n, event in enumerate(events) if isinstance(event, ev.Opened | ev.Changed)]
    found = []
    for (_, row), (n, other) in pairwise(made):
        before, after = row.request, other.request
        if before is None or after is None:
            continue
        for field in before.changed(after):
            if field == "recovery":
                continue  # already part of the prompt or the messages
            old, new = (_field_text(getattr(request, field)) for request in (before, after))
            found.append(
                FieldChange(n=n, at=other.at, field=field, before=old[:MAX_FIELD_CHARS], after=new[:MAX_FIELD_CHARS])
            )
    return found


def _field_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "\n".join(json.dumps(dict(item), ensure_ascii=False) for item in value)
    return json.dumps(dict(value) if hasattr(value, "items") else value, ensure_ascii=False, default=str)


def _outcome(incident: Incident, events: Sequence[ev.Event]) -> dict[str, Any]:
    """Return the outcome as JSON; empty while the incident is open. Levels of a custom ladder count from 1."""
    if incident.status is None:
        return {}
    ladder = LADDERS.get(incident.terms.ladder, LADDERS["task"])
    outcome = build_outcome(incident, ladder, tuple(events), value=None, error=None, now=events[-1].at)
    return {**outcome.to_dict(), "ladder": incident.terms.ladder}
