"""Errors as problem+json (RFC 9457): what was wrong, which field, what is allowed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rung.core.classify.evidence import clip
from rung.core.domain.errors import ConfigError, StoreError, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"
TITLES: Final = {
    400: "That cannot be read",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Not here",
    409: "Not possible now",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Not JSON",
    421: "Not this host",
    422: "Not valid",
    428: "Which version?",
    429: "Too many tries",
    500: "A fault in Rung",
    503: "The journal is in trouble",
}


class FieldError(BaseModel):
    """One thing that is wrong."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """What went wrong."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = None
    errors: list[FieldError] = Field(default_factory=list)


PROBLEM_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": title,
        "content": {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
    for status, title in TITLES.items()
    if status != 500  # noqa: PLR2004  # a fault of ours is not a promise
}


class ApiProblem(Exception):
    """Raised by a route: becomes the answer."""

    def __init__(self, status: int, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field


def problem_response(
    status: int,
    detail: str,
    *,
    field: str | None = None,
    errors: list[FieldError] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """The problem as a response."""
    problem = ProblemDetails(
        title=TITLES.get(status, "Not possible"), status=status, detail=detail, field=field, errors=errors or []
    )
    body = json.dumps(problem.model_dump(), ensure_ascii=True)
    return Response(body, status, media_type=PROBLEM_MEDIA_TYPE, headers=headers)


def install_handlers(app: FastAPI) -> None:
    """Make every error of this app a problem."""

    @app.exception_handler(ApiProblem)
    async def _problem(_: Request, error: ApiProblem) -> Response:
        return problem_response(error.status, error.detail, field=error.field)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = [FieldError(field=_path(one["loc"]), message=clip(str(one["msg"]), 300)) for one in error.errors()]
        first = wrong[0]
        return problem_response(422, f"{first.field}: {first.message}", field=first.field, errors=wrong)

    @app.exception_handler(ConfigError)
    async def _config(_: Request, error: ConfigError) -> Response:
        key = "cursor" if error.key == "after" else error.key  # its name on the wire
        text = f"{key}: {clip(repr(error.value), 200)} is invalid; must be {error.allowed}"
        return problem_response(422, text, field=key, errors=[FieldError(field=key, message=error.allowed)])

    @app.exception_handler(VersionConflict)
    async def _stale(_: Request, error: VersionConflict) -> Response:
        return problem_response(412, f"{error}: read it again, then change that")

    @app.exception_handler(StoreUnavailable)
    @app.exception_handler(StoreError)
    async def _store(_: Request, error: Exception) -> Response:
        return problem_response(503, f"the journal cannot be used just now: {error}")

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        detail = "there is nothing at this address" if error.status_code == 404 else str(error.detail)  # noqa: PLR2004
        return problem_response(error.status_code, detail, headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def _fault(_: Request, error: Exception) -> Response:
        return problem_response(500, f"{type(error).__name__}: what was asked for could not be done")


def _path(location: Any) -> str:
    parts = [str(part) for part in location if part not in ("body", "query", "path", "header")]
    return ".".join(parts) or "body"
