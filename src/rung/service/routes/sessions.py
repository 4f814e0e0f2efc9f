"""Sessions over HTTP: the live list, one session whole, and what a person can do about it."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query

from rung.core.domain.errors import ConfigError
from rung.core.domain.incident import Incident
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.idempotency import IdempotencyKey, run_idempotent
from rung.service.incident_status import live_status, live_statuses
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.replay import error_context, load_incident, retry_intervention
from rung.service.routes.incidents import NO_NUL, incident_out
from rung.service.schemas.base import ActionResult
from rung.service.schemas.sessions import (
    AttemptOut,
    EscalateIn,
    EscalateOut,
    ModelChange,
    LastFailure,
    RetryPreview,
    RetryIn,
    SessionDetail,
    SessionOut,
    SessionPage,
    ModelCost,
)
from rung.store.queries import listing
from rung.store.queries.incidents import incident_to_retry, last_rules, open_incident_by_session, open_incidents
from rung.store.queries.listing import SessionSort
from rung.store.queries.listing_rows import SessionRow
from rung.store.queries.spend import session_left
from rung.store.settings import trace, trail

router = APIRouter(prefix="/api/sessions", tags=["sessions"], responses=PROBLEM_RESPONSES)

STATUSES: Final = ("active", "waiting", "succeeded", "recovered", "partial", "blocked", "failed")
SORTS: Final = {
    "touched": SessionSort.TOUCHED,
    "began": SessionSort.BEGAN,
    "failures": SessionSort.FAILURES,
    "attempts": SessionSort.ATTEMPTS,
    "cost": SessionSort.DOLLARS,
}
LIVE: Final = {"working": "running", "recovering": "retrying", "waiting": "waiting"}
ATTEMPTS: Final = 500  # of a session, shown
RECOVERIES: Final = 200
CONFIRM: Final = 600.0  # seconds in which an estimate can be confirmed
Id = Annotated[str, Path(min_length=1, max_length=300, pattern=NO_NUL)]


@router.get("")
def list_sessions(
    hub: Context,
    _: Reader,
    status: Annotated[str, Query(max_length=20)] = "",
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    model: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    q: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    sort: Annotated[str, Query(max_length=20)] = "touched",
    cursor: Annotated[str | None, Query(max_length=1_000)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> SessionPage:
    """The sessions: filtered, sorted and paged."""
    if status and status not in STATUSES:
        raise ConfigError("status", status, "one of " + ", ".join(STATUSES))
    if sort not in SORTS:
        raise ConfigError("sort", sort, "one of " + ", ".join(SORTS))
    page = listing.sessions(
        hub.journal, status=status or None, project=project, model=model or None, text=q or None, sort=SORTS[sort],
        limit=limit, after=cursor or "",
    )  # fmt: skip
    return SessionPage(items=_out(hub, page.rows), next_cursor=page.after or None, total=page.total)


@router.get("/{session:path}/retry-preview")
def retry_preview(session: Id, hub: Context, _: Reader) -> RetryPreview:
    """What "retry with error context" would send, and whether a retry is possible at all."""
    incident, _events = _last(hub, session)
    policy = hub.policies.pick(incident.terms.project)
    prompt = error_context(incident, policy)
    why_not = "" if incident.status is None else hub.replayers.why_not(incident)
    request = incident.request
    return RetryPreview(
        incident=incident.id,
        prompt=prompt,
        model=request.model if request is not None else "",
        models=[model.name for model in policy.models],
        characters=len(prompt),
        possible=not why_not,
        why_not=why_not,
    )


# After what ends in a word of its own: a name may have slashes, and this takes them all.
@router.get("/{session:path}")
def one_session(session: Id, hub: Context, _: Reader) -> SessionDetail:
    """One session: its attempts, recoveries, changes of model and costs."""
    (row,) = _out(hub, [_row(hub, session)])
    recoveries = listing.incidents(hub.journal, session=session, troubled=False, limit=RECOVERIES).rows
    return SessionDetail(
        **row.model_dump(),
        attempts_made=_attempts(hub, session),
        recoveries=[incident_out(found) for found in recoveries],
        model_changes=_model_changes(hub, session),
        cost=[
            ModelCost(model=one.model, attempts=one.attempts, dollars=one.dollars)
            for one in listing.model_uses(hub.journal, session)
        ],
    )


@router.post("/{session:path}/retry", status_code=202)
def retry(session: Id, wanted: RetryIn, hub: Context, who: Actor, key: IdempotencyKey = None) -> ActionResult:
    """Try again: the recovery that waits goes on at once; one that has ended is made again from here."""
    return run_idempotent(hub, key, who, f"retry {session}", wanted, ActionResult, lambda: _retry(hub, session, wanted, who.name))


def _retry(hub: AppContext, session: str, wanted: RetryIn, by: str) -> ActionResult:
    incident, events = _last(hub, session)
    policy = hub.policies.pick(incident.terms.project)
    order = retry_intervention(wanted.mode, wanted.model, wanted.prompt, error_context(incident, policy), by)
    detail = {"mode": wanted.mode, "incident": incident.id, "model": order.model}
    if incident.status is None:
        if live_status(incident, events).status == "waiting":
            raise ApiProblem(409, "it waits for an answer to its question: answer that instead")
        hub.journal.runs.send(f"order/{incident.id}", order._asdict())
        trace(hub.journal, by, "retry", f"session/{session}", detail)
        return ActionResult(how="ordered", incident=incident.id, note="it is tried again as soon as it waits")
    why_not = hub.replayers.why_not(incident)
    if why_not:
        raise ApiProblem(409, why_not)
    name = hub.replayers.start(incident, order, policy)
    trace(hub.journal, by, "retry", f"session/{session}", {**detail, "again": name})
    return ActionResult(how="replayed", incident=name, note="made again from here; the earlier attempts stay")


@router.post("/{session:path}/escalate")
def escalate(session: Id, wanted: EscalateIn, hub: Context, who: Actor, key: IdempotencyKey = None) -> EscalateOut:
    """Put a session on another model from its next call on: first what that would cost, then confirmed."""
    return run_idempotent(
        hub,
        key if wanted.confirm else None,
        who,
        f"escalate {session}",
        wanted,
        EscalateOut,
        lambda: _escalate(hub, session, wanted, who.name),
    )


def _escalate(hub: AppContext, session: str, wanted: EscalateIn, by: str) -> EscalateOut:
    row = _row(hub, session)
    policy = hub.policies.pick(row.project)
    if wanted.confirm:
        to = _confirmed(hub, session, wanted.confirm)
    else:
        to = wanted.to_model or _next_model(policy, row.model)
    estimate = _estimate(policy, row, to)
    left = session_left(hub.journal, session, time.time())
    if left is not None and estimate is not None and estimate > left:
        raise ApiProblem(
            409, f"{to} would cost about ${estimate:.2f} for each attempt; the session has ${left:.2f} left"
        )
    told: dict[str, Any] = {"from_model": row.model, "to_model": to, "cost_estimate": estimate, "budget_left": left}
    if not wanted.confirm:
        until = f"{time.time() + CONFIRM:.0f}"
        note = "nothing is changed yet: send the token as `confirm`"
        mark = hub.auth.sign(f"{session}\n{to}\n{until}")
        return EscalateOut(**told, token=f"{until}.{mark}.{to}", done=False, note=note)
    hub.journal.runs.send(f"model/{session}", {"model": to, "by": by, "at": time.time()})
    for incident in open_incidents(hub.journal, session):  # what waits goes on at once, with the new model
        hub.journal.runs.send(f"order/{incident}", Intervention(InterventionType.RETRY, by, to)._asdict())
    trace(hub.journal, by, "escalate", f"session/{session}", {**told, "reason": "manual"})
    return EscalateOut(**told, token=None, done=True, note=f"from its next call on it is on {to}")


def _confirmed(hub: AppContext, session: str, token: str) -> str:
    until, _, rest = token.partition(".")
    mark, _, to = rest.partition(".")
    genuine = hub.auth.is_signature(f"{session}\n{to}\n{until}", mark)
    if not genuine or time.time() > float(until):  # signed by us, so it is a number
        raise ApiProblem(409, "that estimate is not of this session, or too old: ask for a new one", field="confirm")
    return to


def _next_model(policy: Any, model: str) -> str:
    place = policy.rank(model) + 1
    if place >= len(policy.models):
        known = ", ".join(one.name for one in policy.models) or "none"
        raise ApiProblem(409, f"there is no model above {model or 'its own'}: the policy's models are {known}")
    return str(policy.models[place].name)


def _estimate(policy: Any, row: SessionRow, to: str) -> float | None:
    """US dollars for one attempt: what the policy says, scaled by what this session's attempts really cost."""
    one, other = policy.model(row.model), policy.model(to)
    mean = row.dollars / row.attempts if row.attempts else 0.0
    if one is not None and other is not None and one.cost and other.cost and mean:
        return float(mean * other.cost / one.cost)
    return float(other.cost) if other is not None and other.cost else None


# -- reading ------------------------------------------------------------------------------------------


def _row(hub: AppContext, session: str) -> SessionRow:
    row = listing.session(hub.journal, session)
    if row is None:
        raise ApiProblem(404, f"there is no session {session!r}")
    return row


def _out(hub: AppContext, rows: list[SessionRow]) -> list[SessionOut]:
    open_ = open_incident_by_session(hub.journal, [row.id for row in rows if row.status in LIVE])
    at_work = live_statuses(hub.journal, open_.values())
    rules = last_rules(hub.journal, [row.id for row in rows if row.failures])
    found = []
    for row in rows:
        now = at_work.get(open_.get(row.id, ""))
        status: Any = now.status if now is not None else LIVE.get(row.status, row.status)
        failure = LastFailure(kind=row.kind, message=row.message, rule=rules.get(row.id, "")) if row.kind else None
        told = row._asdict()
        same = {name: told[name] for name in SessionOut.model_fields if name in told and name != "status"}
        found.append(
            SessionOut(
                **same,
                former_model=row.former,
                status=status,
                last_failure=failure,
                retry=now.retry if now is not None else None,
            )
        )
    return found


def _attempts(hub: AppContext, session: str) -> list[AttemptOut]:
    found: list[AttemptOut] = []
    ended: dict[str, float] = {}
    for row in reversed(listing.attempts(hub.journal, session=session, limit=ATTEMPTS).rows):
        before = ended.get(row.incident)
        found.append(
            AttemptOut(
                incident=row.incident,
                attempt_number=row.number,
                error=row.kind,
                error_message=row.message,
                timestamp=row.at,
                delay_ms=round(max(0.0, row.at - row.seconds - before) * 1_000, 1) if before is not None else 0.0,
                succeeded=row.ok,
                seconds=row.seconds,
                dollars=row.dollars,
                model=row.model,
                rung=row.rung,
                prompt=row.prompt,
                rule=row.rule,
            )
        )
        ended[row.incident] = row.at
    return found


def _model_changes(hub: AppContext, session: str) -> list[ModelChange]:
    found = [
        ModelChange(
            from_model=one.from_model,
            to_model=one.to_model or one.to_agent,
            reason=one.reason,
            timestamp=one.at,
            cost_estimate=one.estimate,
            cost=one.dollars,
            by="",
        )
        for one in listing.model_changes(hub.journal, session=session)
    ]
    found += [
        ModelChange(
            from_model=entry.detail["from_model"],
            to_model=entry.detail["to_model"],
            reason="manual",
            timestamp=entry.at,
            cost_estimate=entry.detail["cost_estimate"],
            cost=None,
            by=entry.who,
        )
        for entry in trail(hub.journal, subject=f"session/{session}")
        if entry.action == "escalate"
    ]
    return sorted(found, key=lambda change: change.timestamp)


def _last(hub: AppContext, session: str) -> tuple[Incident, list[Any]]:
    """The incident a retry is about: the open one, else the last in which something failed, else the last."""
    _row(hub, session)
    incident = incident_to_retry(hub.journal, session)
    if incident is None:
        raise ApiProblem(404, f"nothing was recorded in session {session!r}")
    return load_incident(hub.journal, incident)
