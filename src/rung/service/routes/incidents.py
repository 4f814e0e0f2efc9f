"""Incidents over HTTP: one climb from its first failure to its end, and what a person can say to it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Query

from rung.core.domain import events as ev
from rung.core.domain.ladder import DOES
from rung.core.domain.outcome import build_outcome
from rung.core.policy.presets import LADDERS
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.core.text.event_text import narrate
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.idempotency import IdempotencyKey, run_idempotent
from rung.service.incident_status import LiveStatus, live_status
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.replay import load_incident
from rung.service.schemas.base import ActionResult
from rung.service.schemas.incidents import (
    AnswerIn,
    AskOut,
    AskOption,
    FieldChange,
    IncidentDetail,
    IncidentOut,
    IncidentPage,
    TimelineEntry,
    RungOut,
)
from rung.store.queries import listing
from rung.store.queries.listing_rows import IncidentRow
from rung.store.settings import trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.incident import Incident

router = APIRouter(prefix="/api/incidents", tags=["incidents"], responses=PROBLEM_RESPONSES)

NO_NUL: Final = r"^[^\x00]*$"
FIELD: Final = 20_000  # characters of a request's field in a diff
Id = Annotated[str, Path(min_length=1, max_length=300, pattern=NO_NUL)]


@router.get("")
def list_incidents(
    hub: Context,
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
    since: float | None = None,
    until: float | None = None,
    troubled: bool = False,
    cursor: Annotated[str | None, Query(max_length=1_000)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> IncidentPage:
    """The incidents, the latest first."""
    page = listing.incidents(
        hub.journal, status=status or None, project=project, session=session or None, model=model or None,
        kind=kind or None, rung=rung or None, fingerprint=fingerprint or None, tool=tool or None, prompt=prompt or None,
        pattern=pattern or None, text=q or None, since=since, until=until, troubled=troubled, limit=limit, after=cursor or "",
    )  # fmt: skip
    items = [incident_out(row) for row in page.rows]
    return IncidentPage(items=items, next_cursor=page.after or None, total=page.total)


@router.get("/{incident:path}")
def one_incident(incident: Id, hub: Context, _: Reader) -> IncidentDetail:
    """One incident: its ladder, its timeline, what was changed, and how it ended."""
    found, events = load_incident(hub.journal, incident)
    row = listing.incident(hub.journal, incident)
    if row is None:
        raise ApiProblem(404, f"there is no incident {incident!r}")
    now = live_status(found, events) if found.status is None else LiveStatus("")
    result = hub.journal.runs.received(f"result/{incident}")
    return IncidentDetail(
        **incident_out(row).model_dump(),
        rungs=rung_states(found, events),
        timeline=timeline(events),
        changes=_changes(events),
        outcome=_outcome(found, events),
        ask=next(iter(asks(hub, incident)), None),
        retry=now.retry,
        result=result.get("text") if isinstance(result, dict) else None,
    )


@router.post("/{incident:path}/answer")
def answer(incident: Id, said: AnswerIn, hub: Context, who: Actor, key: IdempotencyKey = None) -> ActionResult:
    """Answer the question an incident waits with; it goes on at once."""
    return run_idempotent(hub, key, who, f"answer {incident}", said, ActionResult, lambda: _answer(hub, incident, said, who.name))


def _answer(hub: AppContext, incident: str, said: AnswerIn, by: str) -> ActionResult:
    waiting = next(iter(asks(hub, incident)), None)
    if waiting is None:
        load_incident(hub.journal, incident)
        raise ApiProblem(409, "it does not wait for an answer: somebody was faster, or it has ended")
    allowed = [option.id for option in waiting.options]
    if said.option not in allowed:
        raise ApiProblem(
            422, f"option: {said.option!r} is invalid; must be one of {', '.join(allowed)}", field="option"
        )
    hub.journal.runs.send(f"answer/{incident}/{waiting.n}", {"option": said.option, "by": by, "note": said.note})
    trace(hub.journal, by, "answer", f"incident/{incident}", {"option": said.option, "note": said.note})
    return ActionResult(how="answered", incident=incident)


@router.post("/{incident:path}/cancel")
def cancel(incident: Id, hub: Context, who: Actor) -> ActionResult:
    """End a recovery: at once where it waits, after the attempt under way where it does not."""
    found, events = load_incident(hub.journal, incident)
    if found.status is not None:
        raise ApiProblem(409, f"it has ended: {found.status}")
    waiting = next(iter(asks(hub, incident)), None)
    if waiting is not None and any(option.id == "stop" for option in waiting.options):
        hub.journal.runs.send(f"answer/{incident}/{waiting.n}", {"option": "stop", "by": who.name})
    else:
        hub.journal.runs.send(f"order/{incident}", Intervention(InterventionType.CANCEL, who.name)._asdict())
    trace(hub.journal, who.name, "cancel", f"incident/{incident}", {})
    now = live_status(found, events).status
    return ActionResult(
        how="ordered", incident=incident, note="" if now == "retrying" else "it ends after the attempt under way"
    )


# -- as it is sent ------------------------------------------------------------------------------------


def incident_out(row: IncidentRow) -> IncidentOut:
    """A row as it is sent."""
    told = row._asdict()
    return IncidentOut(**{name: told[name] for name in IncidentOut.model_fields})


def asks(hub: AppContext, incident: str | None = None, limit: int = 100) -> list[AskOut]:
    """The questions that wait for an answer, of one incident or all: what is answered but not heard yet is not."""
    found = listing.asks(hub.journal, incident=incident, limit=limit)
    return [
        AskOut(
            incident=one.incident,
            n=one.n,
            at=one.at,
            project=one.project,
            question=one.question,
            options=[AskOption(id=option, label=label) for option, label in one.options],
            estimate=one.estimate,
        )
        for one in found
        if hub.journal.runs.received(f"answer/{one.incident}/{one.n}") is None
    ]


def rung_states(incident: Incident, events: Sequence[ev.Event]) -> list[RungOut]:
    """The ladder, with what was done on each rung."""
    ladder = LADDERS.get(incident.terms.ladder)
    known = {rung.name: rung for rung in ladder.rungs} if ladder is not None else {}
    used, times, spent, skipped, at = _by_rung(events)
    found = []
    for index, name in enumerate(incident.terms.rungs):
        rung = known.get(name)
        state = "ahead"
        if index in used:
            state = "here" if index == at and incident.status is None else "climbed"
        elif index in skipped:
            state = "skipped"
        found.append(
            RungOut(
                name=name,
                action=rung.action.value if rung is not None else "",
                about=DOES[rung.action] if rung is not None else "",
                tries=rung.tries if rung is not None else None,
                seconds=rung.seconds if rung is not None else None,
                state=state,  # type: ignore[arg-type]  # one of the words above
                used=used.get(index, 0),
                took=times.get(index, 0.0),
                dollars=spent.get(index, 0.0),
            )
        )
    return found


def _by_rung(
    events: Sequence[ev.Event],
) -> tuple[dict[int, int], dict[int, float], dict[int, float], set[int], int]:
    """Tries, seconds and dollars by rung, the rungs passed over, and the one it is on."""
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
    """What happened, told."""
    rungs: tuple[str, ...] = ()
    number, found = 0, []
    for n, event in enumerate(events):
        if isinstance(event, ev.Opened):
            rungs = event.terms.rungs
        number += isinstance(event, ev.AttemptSucceeded) or (isinstance(event, ev.AttemptFailed) and event.made)
        told = narrate(event, rungs, number)
        found.append(
            TimelineEntry(
                n=n,
                at=event.at,
                name=type(event).__name__,
                mark=told.mark,
                subject=told.subject,
                text=told.text + (f" ({told.time})" if told.time else ""),
                more=list(told.more),
            )
        )
    return found


def _changes(events: Sequence[ev.Event]) -> list[FieldChange]:
    """What each rung changed in the request."""
    made = [(n, event) for n, event in enumerate(events) if isinstance(event, ev.Opened | ev.Changed)]
    found = []
    for (_, one), (n, other) in pairwise(made):
        before, after = one.request, other.request
        if before is None or after is None:
            continue
        for field in before.changed(after):
            if field == "recovery":
                continue  # it is part of the prompt or the messages
            old, new = (_words(getattr(request, field)) for request in (before, after))
            found.append(FieldChange(n=n, at=other.at, field=field, before=old[:FIELD], after=new[:FIELD]))
    return found


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "\n".join(json.dumps(dict(item), ensure_ascii=False) for item in value)
    return json.dumps(dict(value) if hasattr(value, "items") else value, ensure_ascii=False, default=str)


def _outcome(incident: Incident, events: Sequence[ev.Event]) -> dict[str, Any]:
    """The outcome's contract; empty while it is open. Of a ladder of somebody's own the levels count from 1."""
    if incident.status is None:
        return {}
    ladder = LADDERS.get(incident.terms.ladder, LADDERS["task"])
    outcome = build_outcome(incident, ladder, tuple(events), value=None, error=None, now=events[-1].at, sticky=True)
    return {**outcome.to_dict(), "ladder": incident.terms.ladder}
