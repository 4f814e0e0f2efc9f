"""Session routes: list, detail, manual retry and model escalation."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query

from rung.core.classify.error_types import ErrorType, error_type
from rung.core.domain.errors import ConfigError
from rung.core.policy.call_costs import RequestSize
from rung.core.recovery.escalation_reason import EscalationReason, escalation_reason
from rung.core.text.moments import iso_time
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.idempotency import IdempotencyKey, run_idempotent
from rung.service.incident_status import live_statuses, order_note
from rung.service.manual_retry import find_session
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.replay import error_context
from rung.service.retry_ways import API_KEY, RetryChoice
from rung.service.routes.incidents import NO_NUL, incident_out
from rung.service.schemas.incidents import ScheduledRetry
from rung.service.schemas.sessions import (
    AttemptOut,
    EscalateIn,
    EscalateOut,
    LastFailure,
    ModelChange,
    ModelCost,
    RetryIn,
    RetryOut,
    RetryPreview,
    RootCauseOut,
    SessionDetail,
    SessionOut,
    SessionPage,
)
from rung.store.queries import listing
from rung.store.queries.attempt_pauses import pauses_after
from rung.store.queries.incidents import last_rules, open_incident_by_session
from rung.store.queries.listing import SessionSort
from rung.store.queries.listing_rows import ModelChangeRow, SessionRow
from rung.store.session_usage import session_usage
from rung.store.settings import AuditEntry, audit_trail
from rung.wiring.session_causes import session_root_cause

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
UNCONFIRMED: Final = "nothing has changed yet: send the token as `confirm`"
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
def retry_preview(
    session: Id, context: Context, _: Reader, model: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = ""
) -> RetryPreview:
    """Preview of a retry with error context, its cost on a model, and whether a retry is possible."""
    retries = context.retries
    incident, _events = retries.incident(session)
    policy = context.policies.pick(incident.terms.project)
    prompt = error_context(incident, policy)
    row = find_session(context.journal, session)
    here, estimate = retries.estimate(row, incident, policy, model)
    needs = context.replayers.needs(incident) if incident.status is not None else ()
    choice = RetryChoice(model=model, api_key="given" if API_KEY in needs else "")
    why_not = retries.why_not(incident, choice, here, estimate)
    return RetryPreview(
        incident=incident.id,
        prompt=prompt,
        model=here,
        models=[one.name for one in policy.models],
        characters=len(prompt),
        possible=not why_not,
        why_not=why_not,
        needs=list(needs),
        cost_estimate=estimate.total,
        cost_difference=estimate.difference,
        estimate_basis=estimate.basis,
        budget_left=context.replayers.spending.left(session, row.project),
    )


# Registered after the routes with a suffix: a session id may contain slashes, so this path matches everything.
@router.get("/{session:path}")
def one_session(session: Id, context: Context, _: Reader) -> SessionDetail:
    """One session: its attempts, recoveries, model changes and costs."""
    found_row = find_session(context.journal, session)
    (row,) = _out(context, [found_row])
    recoveries = listing.incidents(context.journal, session=session, troubled=False, limit=MAX_RECOVERIES).rows
    return SessionDetail(
        **row.model_dump(),
        attempts_made=_attempts(context, session),
        recoveries=[incident_out(found) for found in recoveries],
        model_changes=_model_changes(context, found_row),
        cost=[
            ModelCost(model=one.model, attempts=one.attempts, dollars=one.dollars)
            for one in listing.model_uses(context.journal, session)
        ],
        cache_share=session_usage(context.journal, session).cache_share,
        root_cause=_root_cause(context, session),
    )


def _root_cause(context: AppContext, session: str) -> RootCauseOut | None:
    cause = session_root_cause(context.journal, session)
    return None if cause is None else RootCauseOut.model_validate(cause.to_json())


@router.post("/{session:path}/retry", status_code=202)
def retry(session: Id, body: RetryIn, context: Context, principal: Actor, key: IdempotencyKey = None) -> RetryOut:
    """Retry: a waiting recovery continues immediately; the call of an ended one is made again.

    On a model that costs more, the first request returns an estimate, and the second confirms it.
    """
    return run_idempotent(
        context,
        key,
        principal,
        f"retry {session}",
        body,
        RetryOut,
        lambda: _retry(context, session, body, principal.name),
        is_final=lambda response: response.how != "estimated",
    )


def _retry(context: AppContext, session: str, body: RetryIn, by: str) -> RetryOut:
    choice = RetryChoice(body.mode, body.model or "", body.prompt or "", body.api_key or "")
    planned = context.retries.plan(session, choice, by)
    incident = planned.incident
    quote = planned.quote
    if body.confirm:
        _check_token(context, f"retry {session}", body.confirm, quote.to_model)
    elif planned.must_confirm:
        if incident.status is not None:
            context.replayers.check(incident, choice)
        token = _sign(context, f"retry {session}", quote.to_model)
        return RetryOut(**quote.fields(), how="estimated", token=token, note=UNCONFIRMED)
    name = context.retries.carry_out(planned, choice)
    if name == incident.id:
        note = order_note(incident, planned.events, time.time())
        return RetryOut(**quote.fields(), how="ordered", incident=name, note=note)
    note = "made again as a new incident of the session; the earlier attempts are kept"
    return RetryOut(**quote.fields(), how="replayed", incident=name, note=note)


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
    find_session(context.journal, session)
    to = _check_token(context, session, body.confirm) if body.confirm else body.to_model or ""
    planned = context.escalations.plan(session, to)
    quote = planned.quote
    if not body.confirm:
        token = _sign(context, session, quote.to_model)
        return EscalateOut(**quote.fields(), token=token, done=False, note=UNCONFIRMED)
    context.escalations.carry_out(planned, by)
    note = f"the session uses {quote.to_model} from its next call"
    return EscalateOut(**quote.fields(), token=None, done=True, note=note)


def _sign(context: AppContext, subject: str, model: str) -> str:
    """Return the token that confirms the estimate of a model for a session."""
    until = f"{time.time() + CONFIRM_SECONDS:.0f}"
    mark = context.auth.sign(f"{subject}\n{model}\n{until}")
    return f"{until}.{mark}.{model}"


def _check_token(context: AppContext, subject: str, token: str, model: str = "") -> str:
    """Return the model that a token confirms; raise a problem if it is for something else, or too old."""
    until, _, rest = token.partition(".")
    mark, _, to = rest.partition(".")
    genuine = context.auth.is_signature(f"{subject}\n{to}\n{until}", mark) and to == (model or to)
    if not genuine or time.time() > float(until):  # signed by us, so it is a number
        raise ApiProblem(409, "that estimate is not of this session, or too old: ask for a new one", field="confirm")
    return to


# -- conversion to schemas ----------------------------------------------------------------------------


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
                retry=ScheduledRetry.of_attempt(now.retry) if now is not None else None,
                parked_until=now.parked_until if now is not None else None,
            )
        )
    return found


def _attempts(context: AppContext, session: str) -> list[AttemptOut]:
    rows = list(reversed(listing.attempts(context.journal, session=session, limit=MAX_ATTEMPTS).rows))
    pauses = pauses_after(context.journal, rows)
    return [
        AttemptOut(
            incident=row.incident,
            attempt_number=row.number,
            error=None if row.ok else ErrorType(row.error_type or error_type(row.kind)),
            error_message=row.message,
            timestamp=iso_time(row.at),
            delay_ms=round(pauses.get((row.incident, row.n), 0.0) * 1_000, 1),
            succeeded=row.ok,
            kind=row.kind,
            seconds=row.seconds,
            dollars=row.dollars,
            model=row.model,
            rung=row.rung,
            prompt=row.prompt,
            rule=row.rule,
        )
        for row in rows
    ]


def _model_changes(context: AppContext, row: SessionRow) -> list[ModelChange]:
    """Return the model changes of a session. One whose decision knew no cost is estimated by the session's usage."""
    spending, policy = context.replayers.spending, context.policies.pick(row.project)
    found = [
        ModelChange(
            from_model=one.from_model,
            to_model=one.to_model or one.to_agent,
            reason=escalation_reason(one.reason),
            cause=one.reason,
            timestamp=iso_time(one.at),
            cost_estimate=one.estimate
            if one.estimate is not None or not one.to_model
            else spending.estimate(row, policy, one.from_model, one.to_model, RequestSize()).total,
            cost=one.dollars,
            by=_answered_by(context, one),
        )
        for one in listing.model_changes(context.journal, session=row.id)
    ]
    found += [
        ModelChange(
            from_model=entry.detail["from_model"],
            to_model=entry.detail["to_model"],
            reason=EscalationReason.MANUAL,
            cause="a person ordered it",
            timestamp=iso_time(entry.at),
            cost_estimate=entry.detail["cost_estimate"],
            cost=None,
            by=entry.who,
        )
        for entry in audit_trail(context.journal, subject=f"session/{row.id}")
        if _is_model_change(entry)
    ]
    return sorted(found, key=lambda change: change.timestamp)


def _answered_by(context: AppContext, change: ModelChangeRow) -> str:
    """Return who approved a change in the service; empty if no person did, or one at the agent's own terminal."""
    if escalation_reason(change.reason) is not EscalationReason.MANUAL:
        return ""
    trail = audit_trail(context.journal, subject=f"incident/{change.incident}")
    return next((entry.who for entry in trail if entry.action == "answer" and entry.at <= change.at), "")


def _is_model_change(entry: AuditEntry) -> bool:
    """Return whether a person changed the model: by an escalation, or by a retry on another one."""
    detail = entry.detail
    is_retry = entry.action == "retry" and detail.get("to_model") != detail.get("from_model")
    return entry.action == "escalate" or is_retry
