"""Schemas of the budget routes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rung.service.schemas.base import ApiModel, StrictNumber


class BudgetsIn(ApiModel):
    """What may be spent, in US dollars: in a month by all, by each project, and by any one session."""

    monthly: Annotated[StrictNumber, Field(ge=0, le=1e9)] | None = None
    session: Annotated[StrictNumber, Field(ge=0, le=1e9)] | None = None
    projects: dict[str, Annotated[StrictNumber, Field(ge=0, le=1e9)]] = Field(default_factory=dict)


class BudgetOut(ApiModel):
    """One budget and what is spent of it."""

    id: str
    scope: Literal["month", "project", "session"]
    name: str
    limit: float
    spent: float
    share: float
    alert: int | None
    acknowledged: bool


class BudgetsOut(ApiModel):
    """The budgets."""

    monthly: float | None
    session: float | None
    projects: dict[str, float]
    version: int
    spent_this_month: float
    items: list[BudgetOut]
