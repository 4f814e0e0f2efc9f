"""Schemas of the administrative routes: login, tokens, audit trail."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, StrictNumber


class CurrentUser(ApiModel):
    """The authenticated user, their role, and facts about this service."""

    name: str
    role: Literal["read", "act", "admin"]
    version: str
    demo: bool
    journal: str
    gateway: str  # address of the gateway beside the service; empty if there is none
    trouble: str
    models: list[str]
    projects: list[str]


class LoginIn(ApiModel):
    """A login request."""

    token: Annotated[str, Field(max_length=500)]


class LoginOut(ApiModel):
    """The secret of a browser's session, beside its cookie: browsers send cookies to every port of a host."""

    csrf: str


class AuditOut(ApiModel):
    """One entry of the audit trail."""

    seq: int
    at: float
    who: str
    action: str
    subject: str
    detail: dict[str, Any]


class TokenIn(ApiModel):
    """An access token to create."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    role: Literal["read", "act", "admin"]
    days: Annotated[StrictNumber, Field(gt=0, le=3_650)] | None = None


class TokenOut(ApiModel):
    """An access token; `token` holds the secret only in the response that creates it."""

    name: str
    role: str
    made_at: float
    ends_at: float | None
    token: str | None = None
