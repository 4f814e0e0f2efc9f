"""Budgets over HTTP: what may be spent, what is, and when somebody should know."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Response

from rung.service import wire
from rung.service.hub import Actor, Admin, Hub, Parts, Reader
from rung.service.problems import DOCUMENTED, Problem
from rung.store.settings import Stale, put_setting, setting, trace

router = APIRouter(prefix="/api", tags=["budgets"], responses=DOCUMENTED)

NAME: Final = "budgets"
SEEN: Final = "acknowledged"
ALERTS: Final = (100, 90, 75, 50)
SHOWN: Final = 50  # sessions near their limit


@router.get("/budgets")
def read_budgets(hub: Parts, _: Reader, response: Response) -> wire.BudgetsOut:
    """The budgets and what is spent of them."""
    stored = setting(hub.journal, NAME)
    response.headers["etag"] = f'"{stored.version}"'
    return _out(hub)


@router.put("/budgets")
def change_budgets(
    budgets: wire.BudgetsIn,
    hub: Parts,
    who: Admin,
    response: Response,
    if_match: Annotated[str | None, Header()] = None,
) -> wire.BudgetsOut:
    """Set them, whole."""
    told = (if_match or "").strip('"')
    if told and not (told.isascii() and told.isdigit()):
        raise Problem(412, "the header If-Match must have the ETag that was read", field="If-Match")
    stored = put_setting(hub.journal, NAME, budgets.model_dump(), who.name, expected=int(told) if told else None)
    response.headers["etag"] = f'"{stored.version}"'
    return _out(hub)


@router.post("/alerts/{alert:path}/acknowledge")
def acknowledge(
    alert: Annotated[str, Path(max_length=500, pattern=r"^[^\x00]+$")], hub: Parts, who: Actor
) -> wire.Done:
    """Somebody has seen it: it leaves the inbox."""
    while True:
        found = setting(hub.journal, SEEN)
        seen = {**(found.body or {}), alert: time.time()}
        if len(seen) > 5_000:  # noqa: PLR2004  # the oldest have long left the inbox
            seen = dict(list(seen.items())[-2_500:])
        try:
            put_setting(hub.journal, SEEN, seen, who.name, expected=found.version)
        except Stale:
            continue
        trace(hub.journal, who.name, "acknowledge", alert, {})
        return wire.Done(how="said")


def acknowledged(hub: Hub) -> frozenset[str]:
    """What somebody has seen."""
    return frozenset(setting(hub.journal, SEEN).body or {})


def session_left(hub: Hub, session: str) -> float | None:
    """Dollars that a session may still spend; None: nothing bounds it."""
    limits = setting(hub.journal, NAME).body or {}
    rows = hub.journal.read("SELECT project, dollars FROM session WHERE id = ?", (session,))
    project, spent = rows[0] if rows else ("", 0.0)
    left = []
    if limits.get("session") is not None:
        left.append(limits["session"] - spent)
    if limits.get("monthly") is not None:
        left.append(limits["monthly"] - _spent(hub, None))
    if project in (limits.get("projects") or {}):
        left.append(limits["projects"][project] - _spent(hub, project))
    return max(0.0, min(left)) if left else None


def _out(hub: Hub) -> wire.BudgetsOut:
    stored = setting(hub.journal, NAME)
    limits: dict[str, Any] = stored.body or {}
    month, seen = _month(), acknowledged(hub)
    spent = _spent(hub, None)
    items = []
    if limits.get("monthly") is not None:
        items.append(_item(f"budget/month/{month}", "month", month, limits["monthly"], spent, seen))
    for project, limit in sorted((limits.get("projects") or {}).items()):
        key = f"budget/project/{project}/{month}"
        items.append(_item(key, "project", project, limit, _spent(hub, project), seen))
    if limits.get("session") is not None:
        rows = hub.journal.read(
            "SELECT id, dollars FROM session WHERE dollars >= ? ORDER BY dollars DESC, id LIMIT ?",
            (limits["session"] * ALERTS[-1] / 100, SHOWN),
        )
        items += [_item(f"budget/session/{name}", "session", name, limits["session"], d, seen) for name, d in rows]
    return wire.BudgetsOut(
        monthly=limits.get("monthly"),
        session=limits.get("session"),
        projects=limits.get("projects") or {},
        version=stored.version,
        spent_this_month=spent,
        items=items,
    )


def _item(key: str, scope: Any, name: str, limit: float, spent: float, seen: frozenset[str]) -> wire.BudgetOut:
    share = spent / limit if limit else float(spent > 0)
    alert = next((level for level in ALERTS if share * 100 >= level), None)
    mark = f"{key}/{alert}"
    return wire.BudgetOut(
        id=mark if alert else key,
        scope=scope,
        name=name,
        limit=limit,
        spent=spent,
        share=share,
        alert=alert,
        acknowledged=mark in seen,
    )


def budget_alerts(hub: Hub) -> list[wire.BudgetOut]:
    """The budgets somebody should know about."""
    return [item for item in _out(hub).items if item.alert is not None and not item.acknowledged]


def _month() -> str:
    return datetime.now(UTC).strftime("%Y-%m")


def _spent(hub: Hub, project: str | None) -> float:
    """Dollars of this month (UTC)."""
    begins = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
    only, values = ("AND project = ?", [project]) if project is not None else ("", [])
    ((spent,),) = hub.journal.read(
        f"SELECT COALESCE(SUM(dollars), 0.0) FROM by_hour WHERE hour >= ? {only}",  # noqa: S608  # our own words
        [int(begins // 3600), *values],
    )
    return float(spent)
