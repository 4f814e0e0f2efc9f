"""Administrative routes: login, current user, event stream, exports, audit trail, tokens, health and metrics."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

import rung
from rung.core.domain.errors import ConfigError
from rung.service.app_context import Admin, Context, Reader
from rung.service.auth import COOKIE_NAME, Role, add_token, revoke_token, tokens
from rung.service.export_response import ExportResponse
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.incidents import NO_NUL
from rung.service.routes.stream import EventStream, StreamFilter
from rung.service.schemas.admin import AuditOut, CurrentUser, LoginIn, LoginOut, TokenIn, TokenOut
from rung.service.schemas.base import ActionResult, Moment
from rung.store.journal import export as exporting
from rung.store.queries import listing
from rung.store.queries.inbox import attempt_counts, incident_counts, known_models, ping
from rung.store.queries.reports_sql import ReportFilter
from rung.store.settings import audit_trail

router = APIRouter(tags=["operation"], responses=PROBLEM_RESPONSES)

MEDIA_TYPES: Final = {
    exporting.ExportFormat.CSV: "text/csv; charset=utf-8",
    exporting.ExportFormat.JSONL: "application/x-ndjson",
    exporting.ExportFormat.PARQUET: "application/vnd.apache.parquet",
}
MAX_PROJECTS: Final = 200  # offered as filters
_Short = Annotated[str, Query(max_length=300, pattern=NO_NUL)]


@router.get("/api/me")
def me(context: Context, principal: Reader) -> CurrentUser:
    """The current user, their role, and facts about this service."""
    configured = [model.name for model in context.policies.pick().models]
    return CurrentUser(
        name=principal.name,
        role=principal.role.value,
        version=rung.__version__,
        demo=context.demo,
        journal=context.journal_location,
        gateway=context.gateway,
        trouble=context.journal.last_error,
        models=[name for name in dict.fromkeys([*configured, *known_models(context.journal)]) if name],
        projects=sorted(row.id for row in listing.projects(context.journal) if row.id)[:MAX_PROJECTS],
    )


@router.post("/api/login")
def login(body: LoginIn, request: Request, response: Response, context: Context) -> LoginOut:
    """Exchange a token for a session cookie and the CSRF token that every request with this cookie must send."""
    principal = context.auth.by_token(body.token)
    if principal is None:
        wait = context.auth.record_failed_login(request.client.host if request.client is not None else "")
        if wait > 0:
            raise ApiProblem(429, "too many wrong tokens from this address", retry_after=wait)
        raise ApiProblem(401, "unknown or expired token", field="token")
    csrf = request.state.auth_middleware.set_cookie(response, principal, request.url.scheme)
    return LoginOut(csrf=csrf)


@router.post("/api/logout")
def logout(response: Response, _: Reader) -> ActionResult:
    """Delete the session cookie of this browser."""
    response.delete_cookie(COOKIE_NAME)
    return ActionResult(how="said")


@router.get(
    "/api/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events, as they are appended to the journal.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    context: Context,
    principal: Reader,
    session: _Short = "",
    project: _Short = "",
    incident: _Short = "",
    name: _Short = "",
    last_event_id: Annotated[str | None, Header()] = None,
    since: Annotated[int | None, Query(ge=0, le=2**60)] = None,
) -> EventStream:
    """The journal's events as server-sent events; none after `Last-Event-ID` or `since` is missed."""
    after = since
    if last_event_id:
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 19):  # noqa: PLR2004  # fits 64 bits
            raise ApiProblem(422, "Last-Event-ID: must be the id of an event, a number", field="Last-Event-ID")
        after = int(last_event_id)
    return EventStream(
        context.stream.subscribe(after, StreamFilter(incident, session, project, name, principal.role is Role.ADMIN))
    )


@router.get(
    "/api/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The exported file.",
            "content": {kind.partition(";")[0]: {} for kind in MEDIA_TYPES.values()},
        }
    },
)
def export(
    context: Context,
    principal: Reader,
    format: Annotated[str, Query(max_length=20)] = "csv",  # noqa: A002  # the query parameter's name
    what: Annotated[str, Query(max_length=20)] = "attempts",
    since: Moment = None,
    until: Moment = None,
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    model: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    kind: Annotated[str | None, Query(max_length=50, pattern=NO_NUL)] = None,
) -> ExportResponse:
    """Export attempts, incidents or events as CSV, JSON lines or Parquet; a few at a time."""
    if format not in tuple(exporting.ExportFormat):
        raise ConfigError("format", format, "one of " + ", ".join(exporting.ExportFormat))
    if what not in tuple(exporting.ExportSubject):
        raise ConfigError("what", what, "one of " + ", ".join(exporting.ExportSubject))
    export_format, subject = exporting.ExportFormat(format), exporting.ExportSubject(what)
    where = ReportFilter(since=since, until=until, project=project, model=model or None, kind=kind or None)
    return ExportResponse(
        lambda file: exporting.export(context.journal, subject, export_format, file, where),
        context.heavy.slot(principal),
        media_type=MEDIA_TYPES[export_format],
        headers={"content-disposition": f'attachment; filename="rung-{subject}.{export_format}"'},
    )


@router.get("/api/audit")
def audit(context: Context, _: Admin, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> list[AuditOut]:
    """The audit audit_trail, newest first."""
    return [AuditOut(**entry._asdict()) for entry in audit_trail(context.journal, limit=limit)]


@router.get("/api/tokens")
def list_tokens(context: Context, _: Admin) -> list[TokenOut]:
    """The stored tokens, without their secrets."""
    return [
        TokenOut(name=one.name, role=one.role.value, made_at=one.made_at, ends_at=one.ends_at)
        for one in tokens(context.journal)
    ]


@router.post("/api/tokens", status_code=201)
def make_token(body: TokenIn, context: Context, principal: Admin) -> TokenOut:
    """Create a token. The response is the only place where its secret appears."""
    token = add_token(context.journal, body.name, body.role, days=body.days, by=principal.name)
    made = [one for one in tokens(context.journal) if one.name == body.name.strip()][-1]
    return TokenOut(name=made.name, role=made.role.value, made_at=made.made_at, ends_at=made.ends_at, token=token)


@router.delete("/api/tokens/{name:path}")
def drop_token(
    name: Annotated[str, Path(min_length=1, max_length=100)], context: Context, principal: Admin
) -> ActionResult:
    """Revoke all tokens of this name, and the cookies issued for them."""
    if not revoke_token(context.journal, name, by=principal.name):
        raise ApiProblem(404, f"there is no token named {name[:100]!r}")
    return ActionResult(how="said", note="the token stops working within a few seconds")


@router.get("/healthz", response_class=PlainTextResponse, include_in_schema=False)
def healthz() -> PlainTextResponse:
    """Liveness probe. Its header tells the service from other programs that answer "ok"."""
    return PlainTextResponse("ok\n", headers={"x-rung-server": "service"})


@router.get("/readyz", response_class=PlainTextResponse, include_in_schema=False)
def readyz(context: Context) -> PlainTextResponse:
    """Readiness probe: whether the journal can be read."""
    trouble = context.journal.last_error
    try:
        ping(context.journal)
    except Exception as error:  # noqa: BLE001  # any error means not ready
        trouble = str(error)
    return PlainTextResponse(f"{trouble or 'ok'}\n", status_code=503 if trouble else 200)


@router.get("/metrics", response_class=PlainTextResponse, include_in_schema=False)
def metrics(context: Context, _: Reader) -> str:
    """Metrics in Prometheus text format."""
    samples: list[tuple[str, str, str, Any]] = []
    ends, attempts = incident_counts(context.journal), attempt_counts(context.journal)
    samples += [("rung_incidents_total", "counter", f'status="{status}"', n) for status, n in ends.items()]
    samples += [("rung_attempts_total", "counter", f'kind="{one.kind}"', one.attempts) for one in attempts]
    samples.append(("rung_dollars_total", "counter", "", sum(one.dollars for one in attempts)))
    samples.append(("rung_events_total", "counter", "", context.stream.seq))
    samples.append(("rung_stream_listeners", "gauge", "", context.stream.listeners))
    samples.append(("rung_journal_in_trouble", "gauge", "", int(bool(context.journal.last_error))))
    lines, current = [], ""
    for name, kind, labels, value in samples:
        if name != current:
            lines.append(f"# TYPE {name} {kind}")
            current = name
        lines.append(f"{name}{{{labels}}} {value}" if labels else f"{name} {value}")
    return "\n".join(lines) + "\n"
