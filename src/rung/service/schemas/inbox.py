"""Schemas of the inbox and notification routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel
from rung.service.schemas.incidents import AskOut


class InboxItem(ApiModel):
    """An item that waits for a person."""

    id: str
    kind: Literal["ask", "task", "parked", "blocked", "budget", "crash", "group"]
    at: float
    title: str
    detail: str
    project: str
    incident: str | None
    ask: AskOut | None
    task: str | None = None
    parked_until: float | None = None


class NotificationsIn(ApiModel):
    """Webhook URL for inbox notifications, in Slack's message format. Empty: no notifications."""

    webhook: Annotated[str, Field(max_length=2_000)] = ""
