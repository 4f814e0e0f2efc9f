"""Budget routes: spend limits, amounts spent, and alerts."""

from __future__ import annotations

import time
from typing import Annotated, Final

from fastapi import APIRouter, Path, Response

from rung.core.domain.errors import VersionConflict
from rung.core.policy.spend_limits import ALERT_PERCENTS, SpendLimit, month_of, reached_alert
from rung.service.app_context import Actor, Admin, AppContext, Context, Reader
from rung.service.if_match import IfMatch, expected_version
from rung.service.problems import PROBLEM_RESPONSES
from rung.service.schemas.base import ActionResult
from rung.service.schemas.budgets import BudgetOut, BudgetsIn, BudgetsOut
from rung.store.queries.spend import SETTING_NAME, spend_limits, spent_in_month, top_sessions
from rung.store.settings import put_setting, record_audit, setting

router = APIRouter(prefix="/api", tags=["budgets"], responses=PROBLEM_RESPONSES)

ACKNOWLEDGED_SETTING: Final = "acknowledged"
MAX_SESSIONS: Final = 50  # near their limit


@router.get("/budgets")
def read_budgets(context: Context, _: Reader, response: Response) -> BudgetsOut:
    """All budgets and the amounts spent."""
    stored = setting(context.journal, SETTING_NAME)
    response.headers["etag"] = f'"{stored.version}"'
    return _out(context)


@router.put("/budgets")
def change_budgets(
    budgets: BudgetsIn, context: Context, principal: Admin, response: Response, if_match: IfMatch = None
) -> BudgetsOut:
    """Replace all budgets."""
    stored = put_setting(
        context.journal, SETTING_NAME, budgets.model_dump(), principal.name, expected=expected_version(if_match)
    )
    response.headers["etag"] = f'"{stored.version}"'
    return _out(context)


@router.post("/alerts/{alert:path}/acknowledge")
def acknowledge(
    alert: Annotated[str, Path(max_length=500, pattern=r"^[^\x00]+$")], context: Context, principal: Actor
) -> ActionResult:
    """Acknowledge an inbox item, which removes it from the inbox."""
    while True:
        current = setting(context.journal, ACKNOWLEDGED_SETTING)
        acknowledged_ids = {**(current.body or {}), alert: time.time()}
        if len(acknowledged_ids) > 5_000:  # noqa: PLR2004  # the oldest entries left the inbox long ago
            acknowledged_ids = dict(list(acknowledged_ids.items())[-2_500:])
        try:
            put_setting(
                context.journal, ACKNOWLEDGED_SETTING, acknowledged_ids, principal.name, expected=current.version
            )
        except VersionConflict:
            continue
        record_audit(context.journal, principal.name, "acknowledge", alert, {})
        return ActionResult(how="said")


def acknowledged(context: AppContext) -> frozenset[str]:
    """Return the ids of the acknowledged inbox items."""
    return frozenset(setting(context.journal, ACKNOWLEDGED_SETTING).body or {})


def _out(context: AppContext) -> BudgetsOut:
    stored = setting(context.journal, SETTING_NAME)
    limits, now, acknowledged_ids = spend_limits(context.journal), time.time(), acknowledged(context)
    by_project = spent_in_month(context.journal, now)
    month, spent = month_of(now), sum(by_project.values())
    items = [
        _item(limit, spent, acknowledged_ids) for limit in limits.limits_for("", "", month) if limit.scope == "month"
    ]
    for project in sorted(limits.projects):
        limit = limits.limits_for("", project, month)[-1]
        items.append(_item(limit, by_project.get(project, 0.0), acknowledged_ids))
    if limits.session is not None:
        spenders = top_sessions(context.journal, limits.session * ALERT_PERCENTS[0] / 100, MAX_SESSIONS)
        items += [
            _item(limits.limits_for(name, "", month)[-1], dollars, acknowledged_ids)
            for name, dollars in spenders.items()
        ]
    return BudgetsOut(
        monthly=limits.month,
        session=limits.session,
        projects=dict(limits.projects),
        version=stored.version,
        spent_this_month=spent,
        items=items,
    )


def _item(limit: SpendLimit, spent: float, acknowledged_ids: frozenset[str]) -> BudgetOut:
    threshold = reached_alert(spent, limit.limit)
    name = f"{limit.id}/{threshold}" if threshold else limit.id
    return BudgetOut(
        id=name,
        scope=limit.scope,  # type: ignore[arg-type]  # `limits_for` returns no limit of a key
        name=limit.name,
        limit=limit.limit,
        spent=spent,
        share=spent / limit.limit if limit.limit else float(spent > 0),
        alert=threshold,
        acknowledged=threshold is not None and name in acknowledged_ids,
    )


def budget_alerts(context: AppContext) -> list[BudgetOut]:
    """Return the budgets with an unacknowledged alert."""
    return [item for item in _out(context).items if item.alert is not None and not item.acknowledged]
