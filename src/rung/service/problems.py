"""Error responses as application/problem+json (RFC 9457)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rung.core.classify.evidence import clip
from rung.core.domain.errors import ConfigError, StoreError, StoreUnavailable, VersionConflict
from rung.service.api_problem import ApiProblem

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

__all__ = ["PROBLEM_RESPONSES", "ApiProblem", "ProblemDetails", "install_handlers", "problem_response"]

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"
TITLES: Final = {
    400: "Malformed request",
    401: "Authentication required",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    412: "Version conflict",
    413: "Request body too large",
    415: "Unsupported media type",
    421: "Unknown host",
    422: "Invalid request",
    428: "Version required",
    429: "Too many requests",
    500: "Internal error",
    503: "Journal unavailable",
}


class FieldError(BaseModel):
    """One invalid field."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """Problem details of an error response."""

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
    if status != 500  # noqa: PLR2004  # internal errors are not part of the API contract
}


def problem_response(
    status: int,
    detail: str,
    *,
    field: str | None = None,
    errors: list[FieldError] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a problem response."""
    problem = ProblemDetails(
        title=TITLES.get(status, "Request failed"), status=status, detail=detail, field=field, errors=errors or []
    )
    body = json.dumps(problem.model_dump(), ensure_ascii=True)
    return Response(body, status, media_type=PROBLEM_MEDIA_TYPE, headers=headers)


def install_handlers(app: FastAPI) -> None:
    """Install exception handlers that turn every error of this app into a problem response."""

    @app.exception_handler(ApiProblem)
    async def _problem(_: Request, error: ApiProblem) -> Response:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        errors = [FieldError(field=_path(item["loc"]), message=clip(str(item["msg"]), 300)) for item in error.errors()]
        first = errors[0]
        return problem_response(422, f"{first.field}: {first.message}", field=first.field, errors=errors)

    @app.exception_handler(ConfigError)
    async def _config(_: Request, error: ConfigError) -> Response:
        key = "cursor" if error.key == "after" else error.key  # the query parameter's name
        text = f"{key}: {clip(repr(error.value), 200)} is invalid; must be {error.allowed}"
        return problem_response(422, text, field=key, errors=[FieldError(field=key, message=error.allowed)])

    @app.exception_handler(VersionConflict)
    async def _stale(_: Request, error: VersionConflict) -> Response:
        return problem_response(412, f"{error}: read the current version, then change that")

    @app.exception_handler(StoreUnavailable)
    @app.exception_handler(StoreError)
    async def _store(_: Request, error: Exception) -> Response:
        return problem_response(503, f"journal unavailable: {error}")

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        detail = "no such route" if error.status_code == 404 else str(error.detail)  # noqa: PLR2004
        return problem_response(error.status_code, detail, headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def _fault(_: Request, error: Exception) -> Response:
        return problem_response(500, f"{type(error).__name__}: the request failed unexpectedly")


def _path(location: Any) -> str:
    parts = [str(part) for part in location if part not in ("body", "query", "path", "header")]
    return ".".join(parts) or "body"
