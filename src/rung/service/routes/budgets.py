"""Budgets over HTTP: what may be spent, what is, and when somebody should know."""

from __future__ import annotations

import time
from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Response

from rung.core.domain.errors import VersionConflict
from rung.core.policy.spend_limits import ALERTS, SpendLimit, alert_at, month_of
from rung.service.app_context import Actor, Admin, AppContext, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.schemas.base import ActionResult
from rung.service.schemas.budgets import BudgetOut, BudgetsIn, BudgetsOut
from rung.store.queries.spend import NAME, allowance, spent_in_month, top_sessions
from rung.store.settings import put_setting, setting, trace

router = APIRouter(prefix="/api", tags=["budgets"], responses=PROBLEM_RESPONSES)

SEEN: Final = "acknowledged"
SHOWN: Final = 50  # sessions near their limit


@router.get("/budgets")
def read_budgets(hub: Context, _: Reader, response: Response) -> BudgetsOut:
    """The budgets and what is spent of them."""
    stored = setting(hub.journal, NAME)
    response.headers["etag"] = f'"{stored.version}"'
    return _out(hub)


@router.put("/budgets")
def change_budgets(
    budgets: BudgetsIn,
    hub: Context,
    who: Admin,
    response: Response,
    if_match: Annotated[str | None, Header()] = None,
) -> BudgetsOut:
    """Set them, whole."""
    told = (if_match or "").strip('"')
    if told and not (told.isascii() and told.isdigit()):
        raise ApiProblem(412, "the header If-Match must have the ETag that was read", field="If-Match")
    stored = put_setting(hub.journal, NAME, budgets.model_dump(), who.name, expected=int(told) if told else None)
    response.headers["etag"] = f'"{stored.version}"'
    return _out(hub)


@router.post("/alerts/{alert:path}/acknowledge")
def acknowledge(alert: Annotated[str, Path(max_length=500, pattern=r"^[^\x00]+$")], hub: Context, who: Actor) -> ActionResult:
    """Somebody has seen it: it leaves the inbox."""
    while True:
        found = setting(hub.journal, SEEN)
        seen = {**(found.body or {}), alert: time.time()}
        if len(seen) > 5_000:  # noqa: PLR2004  # the oldest have long left the inbox
            seen = dict(list(seen.items())[-2_500:])
        try:
            put_setting(hub.journal, SEEN, seen, who.name, expected=found.version)
        except VersionConflict:
            continue
        trace(hub.journal, who.name, "acknowledge", alert, {})
        return ActionResult(how="said")


def acknowledged(hub: AppContext) -> frozenset[str]:
    """What somebody has seen."""
    return frozenset(setting(hub.journal, SEEN).body or {})


def _out(hub: AppContext) -> BudgetsOut:
    stored = setting(hub.journal, NAME)
    limits, now, seen = allowance(hub.journal), time.time(), acknowledged(hub)
    by_project = spent_in_month(hub.journal, now)
    month, spent = month_of(now), sum(by_project.values())
    items = [_item(purse, spent, seen) for purse in limits.purses("", "", month) if purse.scope == "month"]
    for project in sorted(limits.projects):
        purse = limits.purses("", project, month)[-1]
        items.append(_item(purse, by_project.get(project, 0.0), seen))
    if limits.session is not None:
        spenders = top_sessions(hub.journal, limits.session * ALERTS[0] / 100, SHOWN)
        items += [_item(limits.purses(name, "", month)[-1], dollars, seen) for name, dollars in spenders.items()]
    return BudgetsOut(
        monthly=limits.month,
        session=limits.session,
        projects=dict(limits.projects),
        version=stored.version,
        spent_this_month=spent,
        items=items,
    )


def _item(purse: SpendLimit, spent: float, seen: frozenset[str]) -> BudgetOut:
    mark = alert_at(spent, purse.limit)
    name = f"{purse.id}/{mark}" if mark else purse.id
    return BudgetOut(
        id=name,
        scope=purse.scope,
        name=purse.name,
        limit=purse.limit,
        spent=spent,
        share=spent / purse.limit if purse.limit else float(spent > 0),
        alert=mark,
        acknowledged=mark is not None and name in seen,
    )


def budget_alerts(hub: AppContext) -> list[BudgetOut]:
    """The budgets somebody should know about."""
    return [item for item in _out(hub).items if item.alert is not None and not item.acknowledged]
