"""Who am I, the event stream, exports, tokens, the trail, and whether all is well."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

import rung
from rung.core.domain.errors import ConfigError
from rung.service.app_context import Admin, AppContext, Context, Reader
from rung.service.auth import COOKIE_NAME, add_token, revoke_token, tokens
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.incidents import NO_NUL
from rung.service.routes.stream import EventStream, StreamFilter
from rung.service.schemas.base import ActionResult
from rung.service.schemas.operations import AuditOut, LoginIn, CurrentUser, TokenIn, TokenOut
from rung.store.journal import export as exporting
from rung.store.queries import listing
from rung.store.queries.inbox import attempt_counts, incident_counts, known_models, ping
from rung.store.queries.reports_sql import ReportFilter
from rung.store.settings import trail

router = APIRouter(tags=["operation"], responses=PROBLEM_RESPONSES)

MEDIA: Final = {
    exporting.ExportFormat.CSV: "text/csv; charset=utf-8",
    exporting.ExportFormat.JSONL: "application/x-ndjson",
    exporting.ExportFormat.PARQUET: "application/vnd.apache.parquet",
}
CHUNK: Final = 64 * 1024
MOST: Final = 200  # projects offered as filters
_Short = Annotated[str, Query(max_length=300, pattern=NO_NUL)]


@router.get("/api/me")
def me(request: Request, hub: Context, who: Reader) -> CurrentUser:
    """Who asks, what they may do, and what they must send with an act."""
    known = [model.name for model in hub.policies.pick().models]
    return CurrentUser(
        name=who.name,
        role=who.role.value,
        csrf=request.state.csrf,
        version=rung.__version__,
        demo=hub.demo,
        journal=hub.journal_location,
        trouble=hub.journal.last_error,
        models=[name for name in dict.fromkeys([*known, *known_models(hub.journal)]) if name],
        projects=sorted(row.id for row in listing.projects(hub.journal) if row.id)[:MOST],
    )


@router.post("/api/login")
def login(told: LoginIn, request: Request, response: Response, hub: Context) -> ActionResult:
    """Change a token for a cookie."""
    address = request.client.host if request.client is not None else ""
    if hub.auth.lockout_seconds(address) > 0:
        raise ApiProblem(429, "too many wrong tokens came from this address: wait a minute")
    who = hub.auth.by_token(told.token)
    if who is None:
        hub.auth.record_failed_login(address)
        raise ApiProblem(401, "that is not a token of this service", field="token")
    request.state.guard.set_cookie(response, who)
    return ActionResult(how="said")


@router.post("/api/logout")
def logout(response: Response, _: Reader) -> ActionResult:
    """Forget this browser."""
    response.delete_cookie(COOKIE_NAME)
    return ActionResult(how="said")


@router.get(
    "/api/events",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Events as they come.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    },
)
async def events(
    hub: Context,
    _: Reader,
    session: _Short = "",
    project: _Short = "",
    incident: _Short = "",
    name: _Short = "",
    last_event_id: Annotated[str | None, Header()] = None,
    since: Annotated[int | None, Query(ge=0, le=2**60)] = None,
) -> EventStream:
    """The journal's events as they come (SSE); from `Last-Event-ID` or `since` on, none is missed."""
    seen = since
    if last_event_id:
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 19):  # noqa: PLR2004  # of 64 bits
            raise ApiProblem(422, "Last-Event-ID: a number is wanted, as it was sent", field="Last-Event-ID")
        seen = int(last_event_id)
    return EventStream(hub.stream.subscribe(seen, StreamFilter(incident, session, project, name)))


@router.get(
    "/api/export",
    response_class=StreamingResponse,
    responses={200: {"description": "The file.", "content": {kind.partition(";")[0]: {} for kind in MEDIA.values()}}},
)
def export(
    hub: Context,
    _: Reader,
    format: Annotated[str, Query(max_length=20)] = "csv",  # noqa: A002  # its name on the wire
    what: Annotated[str, Query(max_length=20)] = "attempts",
    since: float | None = None,
    until: float | None = None,
    project: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    model: Annotated[str | None, Query(max_length=200, pattern=NO_NUL)] = None,
    kind: Annotated[str | None, Query(max_length=50, pattern=NO_NUL)] = None,
) -> StreamingResponse:
    """Attempts, incidents or events as CSV, JSON lines or Parquet."""
    if format not in tuple(exporting.ExportFormat):
        raise ConfigError("format", format, "one of " + ", ".join(exporting.ExportFormat))
    if what not in tuple(exporting.ExportSubject):
        raise ConfigError("what", what, "one of " + ", ".join(exporting.ExportSubject))
    form, table = exporting.ExportFormat(format), exporting.ExportSubject(what)
    where = ReportFilter(since=since, until=until, project=project, model=model or None, kind=kind or None)
    return StreamingResponse(
        _written(hub, form, table, where),
        media_type=MEDIA[form],
        headers={"content-disposition": f'attachment; filename="rung-{table}.{form}"'},
    )


def _written(
    hub: AppContext, form: exporting.ExportFormat, table: exporting.ExportSubject, where: ReportFilter
) -> Iterator[bytes]:
    """The file, by way of the disk: it may be larger than memory."""
    with tempfile.TemporaryFile() as file:
        exporting.export(hub.journal, table, form, file, where)
        file.seek(0)
        while chunk := file.read(CHUNK):
            yield chunk


@router.get("/api/audit")
def audit(hub: Context, _: Admin, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> list[AuditOut]:
    """Who did what, the newest first."""
    return [AuditOut(**entry._asdict()) for entry in trail(hub.journal, limit=limit)]


@router.get("/api/tokens")
def list_tokens(hub: Context, _: Admin) -> list[TokenOut]:
    """The tokens there are; never what they are."""
    return [
        TokenOut(name=one.name, role=one.role.value, made_at=one.made_at, ends_at=one.ends_at)
        for one in tokens(hub.journal)
    ]


@router.post("/api/tokens", status_code=201)
def make_token(wanted: TokenIn, hub: Context, who: Admin) -> TokenOut:
    """A new token: shown now, and never again."""
    token = add_token(hub.journal, wanted.name, wanted.role, days=wanted.days, by=who.name)
    made = [one for one in tokens(hub.journal) if one.name == wanted.name.strip()][-1]
    return TokenOut(name=made.name, role=made.role.value, made_at=made.made_at, ends_at=made.ends_at, token=token)


@router.delete("/api/tokens/{name}")
def drop_token(name: str, hub: Context, who: Admin) -> ActionResult:
    """Take back the tokens of this name, and the cookies that were made of them."""
    if not revoke_token(hub.journal, name, by=who.name):
        raise ApiProblem(404, f"there is no token of the name {name[:100]!r}")
    return ActionResult(how="said", note="within seconds nobody gets in with it")


@router.get("/healthz", response_class=PlainTextResponse, include_in_schema=False)
def healthz() -> str:
    """Is the process there?"""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse, include_in_schema=False)
def readyz(hub: Context) -> PlainTextResponse:
    """Can it do its work?"""
    trouble = hub.journal.last_error
    try:
        ping(hub.journal)
    except Exception as error:  # noqa: BLE001  # whatever it is, we are not ready
        trouble = str(error)
    return PlainTextResponse(f"{trouble or 'ok'}\n", status_code=503 if trouble else 200)


@router.get("/metrics", response_class=PlainTextResponse, include_in_schema=False)
def metrics(hub: Context, _: Reader) -> str:
    """For Prometheus."""
    rows: list[tuple[str, str, str, Any]] = []
    ends, attempts = incident_counts(hub.journal), attempt_counts(hub.journal)
    rows += [("rung_incidents_total", "counter", f'status="{status}"', n) for status, n in ends.items()]
    rows += [("rung_attempts_total", "counter", f'kind="{one.kind}"', one.attempts) for one in attempts]
    rows.append(("rung_dollars_total", "counter", "", sum(one.dollars for one in attempts)))
    rows.append(("rung_events_total", "counter", "", hub.stream.seq))
    rows.append(("rung_stream_listeners", "gauge", "", hub.stream.listeners))
    rows.append(("rung_journal_in_trouble", "gauge", "", int(bool(hub.journal.last_error))))
    lines, known = [], ""
    for name, kind, labels, value in rows:
        if name != known:
            lines.append(f"# TYPE {name} {kind}")
            known = name
        lines.append(f"{name}{{{labels}}} {value}" if labels else f"{name} {value}")
    return "\n".join(lines) + "\n"
