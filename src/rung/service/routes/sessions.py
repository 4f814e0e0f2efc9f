"""Session routes: list, detail, manual retry and model escalation."""

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
    LastFailure,
    ModelChange,
    ModelCost,
    RetryIn,
    RetryPreview,
    SessionDetail,
    SessionOut,
    SessionPage,
)
from rung.store.queries import listing
from rung.store.queries.incidents import incident_to_retry, last_rules, open_incident_by_session, open_incidents
from rung.store.queries.listing import SessionSort
from rung.store.queries.listing_rows import SessionRow
from rung.store.settings import audit_trail, record_audit

router = APIRouter(prefix="/api/sessions", tags=["sessions"], responses=PROBLEM_RESPONSES)

STATUSES: Final = ("active", "waiting", "succeeded", "recovered", "partial", "blocked", "failed")
SORTS: Final = {
    "touched": SessionSort.TOUCHED,
    "began": SessionSort.BEGAN,
    "failures": SessionSort.FAILURES,
    "attempts": SessionSort.ATTEMPTS,
    "cost": SessionSort.DOLLARS,
}
LIVE_STATUS: Final = {"working": "running", "recovering": "retrying", "waiting": "waiting"}
MAX_ATTEMPTS: Final = 500  # of a session, in one response
MAX_RECOVERIES: Final = 200
CONFIRM_SECONDS: Final = 600.0  # how long an estimate can be confirmed
Id = Annotated[str, Path(min_length=1, max_length=300, pattern=NO_NUL)]


@router.get("")
def list_sessions(
    context: Context,
    _: Reader,
    status: Annotated[str, Query(max_length=20)] = "",
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    model: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    q: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    sort: Annotated[str, Query(max_length=20)] = "touched",
    cursor: Annotated[str | None, Query(max_length=1_000)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> SessionPage:
    """Sessions: filtered, sorted and paged."""
    if status and status not in STATUSES:
        raise ConfigError("status", status, "one of " + ", ".join(STATUSES))
    if sort not in SORTS:
        raise ConfigError("sort", sort, "one of " + ", ".join(SORTS))
    page = listing.sessions(
        context.journal, status=status or None, project=project, model=model or None, text=q or None, sort=SORTS[sort],
        limit=limit, after=cursor or "",
    )  # fmt: skip
    return SessionPage(items=_out(context, page.rows), next_cursor=page.after or None, total=page.total)


@router.get("/{session:path}/retry-preview")
def retry_preview(session: Id, context: Context, _: Reader) -> RetryPreview:
    """Preview of a retry with error context, and whether a retry is possible."""
    incident, _events = _incident_to_retry(context, session)
    policy = context.policies.pick(incident.terms.project)
    prompt = error_context(incident, policy)
    why_not = "" if incident.status is None else context.replayers.why_not(incident)
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


# Registered after the routes with a suffix: a session id may contain slashes, so this path matches everything.
@router.get("/{session:path}")
def one_session(session: Id, context: Context, _: Reader) -> SessionDetail:
    """One session: its attempts, recoveries, model changes and costs."""
    (row,) = _out(context, [_row(context, session)])
    recoveries = listing.incidents(context.journal, session=session, troubled=False, limit=MAX_RECOVERIES).rows
    return SessionDetail(
        **row.model_dump(),
        attempts_made=_attempts(context, session),
        recoveries=[incident_out(found) for found in recoveries],
        model_changes=_model_changes(context, session),
        cost=[
            ModelCost(model=one.model, attempts=one.attempts, dollars=one.dollars)
            for one in listing.model_uses(context.journal, session)
        ],
    )


@router.post("/{session:path}/retry", status_code=202)
def retry(session: Id, body: RetryIn, context: Context, principal: Actor, key: IdempotencyKey = None) -> ActionResult:
    """Retry: a waiting recovery continues immediately; an ended one is replayed by this service."""
    return run_idempotent(
        context,
        key,
        principal,
        f"retry {session}",
        body,
        ActionResult,
        lambda: _retry(context, session, body, principal.name),
    )


def _retry(context: AppContext, session: str, body: RetryIn, by: str) -> ActionResult:
    incident, events = _incident_to_retry(context, session)
    policy = context.policies.pick(incident.terms.project)
    intervention = retry_intervention(body.mode, body.model, body.prompt, error_context(incident, policy), by)
    detail = {"mode": body.mode, "incident": incident.id, "model": intervention.model}
    if incident.status is None:
        if live_status(incident, events).status == "waiting":
            raise ApiProblem(409, "the recovery waits for an answer to its question: answer it instead")
        spending, model = context.replayers.spending, policy.model(intervention.model)
        spending.order(incident.id, incident.terms.session, incident.terms.project, model.cost if model else 0.0)
        context.journal.runs.send(f"order/{incident.id}", intervention._asdict())
        record_audit(context.journal, by, "retry", f"session/{session}", detail)
        return ActionResult(
            how="ordered", incident=incident.id, note="the recovery retries as soon as the current attempt ends"
        )
    why_not = context.replayers.why_not(incident)
    if why_not:
        raise ApiProblem(409, why_not)
    name = context.replayers.start(incident, intervention, policy)
    record_audit(context.journal, by, "retry", f"session/{session}", {**detail, "again": name})
    return ActionResult(
        how="replayed", incident=name, note="replayed by this service as a new incident; the earlier attempts are kept"
    )


@router.post("/{session:path}/escalate")
def escalate(
    session: Id, body: EscalateIn, context: Context, principal: Actor, key: IdempotencyKey = None
) -> EscalateOut:
    """Switch a session to another model from its next call: the first request returns an estimate, the second confirms it."""
    return run_idempotent(
        context,
        key if body.confirm else None,
        principal,
        f"escalate {session}",
        body,
        EscalateOut,
        lambda: _escalate(context, session, body, principal.name),
    )


def _escalate(context: AppContext, session: str, body: EscalateIn, by: str) -> EscalateOut:
    row = _row(context, session)
    policy = context.policies.pick(row.project)
    requested = body.to_model or ""
    to = _confirmed(context, session, body.confirm) if body.confirm else requested or _next_model(policy, row.model)
    estimate = _estimate(policy, row, to)
    left = context.replayers.spending.left(session, row.project)
    if left is not None and estimate is not None and estimate > left:
        raise ApiProblem(
            409, f"{to} costs about ${estimate:.2f} per attempt; the session's remaining budget is ${left:.2f}"
        )
    estimate_fields: dict[str, Any] = {
        "from_model": row.model,
        "to_model": to,
        "cost_estimate": estimate,
        "budget_left": left,
    }
    if not body.confirm:
        until = f"{time.time() + CONFIRM_SECONDS:.0f}"
        note = "nothing has changed yet: send the token as `confirm`"
        if left is not None and estimate is None:
            note += f"; the cost of {to} is unknown, and the session has a spend limit"
        mark = context.auth.sign(f"{session}\n{to}\n{until}")
        return EscalateOut(**estimate_fields, token=f"{until}.{mark}.{to}", done=False, note=note)
    context.replayers.spending.order(session, session, row.project, estimate or 0.0)
    context.journal.runs.send(f"model/{session}", {"model": to, "by": by, "at": time.time()})
    for incident in open_incidents(
        context.journal, session
    ):  # waiting recoveries continue immediately with the new model
        context.journal.runs.send(f"order/{incident}", Intervention(InterventionType.RETRY, by, to)._asdict())
    record_audit(context.journal, by, "escalate", f"session/{session}", {**estimate_fields, "reason": "manual"})
    return EscalateOut(**estimate_fields, token=None, done=True, note=f"the session uses {to} from its next call")


def _confirmed(context: AppContext, session: str, token: str) -> str:
    until, _, rest = token.partition(".")
    mark, _, to = rest.partition(".")
    genuine = context.auth.is_signature(f"{session}\n{to}\n{until}", mark)
    if not genuine or time.time() > float(until):  # signed by us, so it is a number
        raise ApiProblem(409, "that estimate is not of this session, or too old: ask for a new one", field="confirm")
    return to


def _next_model(policy: Any, model: str) -> str:
    place = policy.rank(model) + 1
    if place >= len(policy.models):
        known = ", ".join(one.name for one in policy.models) or "none"
        raise ApiProblem(409, f"there is no model above {model or 'the current one'}; the policy's models are: {known}")
    return str(policy.models[place].name)


def _estimate(policy: Any, row: SessionRow, to: str) -> float | None:
    """Estimate the dollars per attempt: the session's mean cost, scaled by the models' price ratio."""
    one, other = policy.model(row.model), policy.model(to)
    mean = row.dollars / row.attempts if row.attempts else 0.0
    if one is not None and other is not None and one.cost and other.cost and mean:
        return float(mean * other.cost / one.cost)
    return float(other.cost) if other is not None and other.cost else None


# -- conversion to schemas ----------------------------------------------------------------------------


def _row(context: AppContext, session: str) -> SessionRow:
    row = listing.session(context.journal, session)
    if row is None:
        raise ApiProblem(404, f"there is no session {session!r}")
    return row


def _out(context: AppContext, rows: list[SessionRow]) -> list[SessionOut]:
    open_ = open_incident_by_session(context.journal, [row.id for row in rows if row.status in LIVE_STATUS])
    live = live_statuses(context.journal, open_.values())
    rules = last_rules(context.journal, [row.id for row in rows if row.failures])
    found = []
    for row in rows:
        now = live.get(open_.get(row.id, ""))
        status: Any = now.status if now is not None else LIVE_STATUS.get(row.status, row.status)
        failure = LastFailure(kind=row.kind, message=row.message, rule=rules.get(row.id, "")) if row.kind else None
        values = row._asdict()
        common = {name: values[name] for name in SessionOut.model_fields if name in values and name != "status"}
        found.append(
            SessionOut(
                **common,
                former_model=row.former,
                status=status,
                last_failure=failure,
                retry=now.retry if now is not None else None,
                parked_until=now.parked_until if now is not None else None,
            )
        )
    return found


def _attempts(context: AppContext, session: str) -> list[AttemptOut]:
    found: list[AttemptOut] = []
    ended: dict[str, float] = {}
    for row in reversed(listing.attempts(context.journal, session=session, limit=MAX_ATTEMPTS).rows):
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


def _model_changes(context: AppContext, session: str) -> list[ModelChange]:
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
        for one in listing.model_changes(context.journal, session=session)
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
        for entry in audit_trail(context.journal, subject=f"session/{session}")
        if entry.action == "escalate"
    ]
    return sorted(found, key=lambda change: change.timestamp)


def _incident_to_retry(context: AppContext, session: str) -> tuple[Incident, list[Any]]:
    """Return the incident to retry: the open one, else the last with a failure, else the last."""
    _row(context, session)
    incident = incident_to_retry(context.journal, session)
    if incident is None:
        raise ApiProblem(404, f"session {session!r} has no recorded incident")
    return load_incident(context.journal, incident)
