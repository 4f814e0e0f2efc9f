"""Schemas of the budget routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, StrictNumber


class BudgetsIn(ApiModel):
    """Spend limits in US dollars: per month in total, per month and project, and per session."""

    monthly: Annotated[StrictNumber, Field(ge=0, le=1e9)] | None = None
    session: Annotated[StrictNumber, Field(ge=0, le=1e9)] | None = None
    projects: dict[str, Annotated[StrictNumber, Field(ge=0, le=1e9)]] = Field(default_factory=dict)


class BudgetOut(ApiModel):
    """One budget and the amount spent of it."""

    id: str
    scope: Literal["month", "project", "session"]
    name: str
    limit: float
    spent: float
    share: float
    alert: int | None
    acknowledged: bool


class BudgetsOut(ApiModel):
    """All budgets, with their version for If-Match."""

    monthly: float | None
    session: float | None
    projects: dict[str, float]
    version: int
    spent_this_month: float
    items: list[BudgetOut]
