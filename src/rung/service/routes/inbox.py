"""Inbox routes: everything that waits for a person, and webhook notifications about it."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from contextlib import suppress
from typing import Final

from fastapi import APIRouter

from rung.adapters.system.webhook import check_webhook, post_webhook
from rung.core.crew.contract import ASKS_PREFIX
from rung.core.crew.pool import Pool, PoolState, describe
from rung.core.domain.dollars import format_dollars
from rung.core.text.moments import format_moment
from rung.service.app_context import Admin, AppContext, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.budgets import acknowledged, budget_alerts
from rung.service.routes.crews import parse_time
from rung.service.routes.incidents import asks
from rung.service.schemas.inbox import InboxItem, NotificationsIn
from rung.store.crew import board
from rung.store.fleet.notices import NoticeState, claim_notice, settle_notice
from rung.store.queries import groups as grouped
from rung.store.queries.inbox import blocked_incidents, parked_incidents
from rung.store.queries.listing import crashes
from rung.store.settings import put_setting, setting

router = APIRouter(prefix="/api", tags=["inbox"], responses=PROBLEM_RESPONSES)

_LOG: Final = logging.getLogger(__name__)
NOTIFICATIONS_SETTING: Final = "notifications"
RECENT_SECONDS: Final = 7 * 86_400.0
MAX_ITEMS: Final = 100
POLL_SECONDS: Final = 5.0


@router.get("/inbox")
def inbox(context: Context, _: Reader) -> list[InboxItem]:
    """Items that wait for a person: questions first, then newest first."""
    return inbox_items(context)


@router.get("/notifications")
def notifications(context: Context, _: Admin) -> NotificationsIn:
    """The notification settings."""
    return NotificationsIn(**(setting(context.journal, NOTIFICATIONS_SETTING).body or {}))


@router.put("/notifications")
def change_notifications(body: NotificationsIn, context: Context, principal: Admin) -> NotificationsIn:
    """Set the notification webhook. Notifications never contain a prompt."""
    if body.webhook:
        check_webhook(body.webhook, context.webhook_hosts)
    put_setting(context.journal, NOTIFICATIONS_SETTING, body.model_dump(), principal.name)
    return body


def inbox_items(context: AppContext) -> list[InboxItem]:
    """Return all unacknowledged items: questions first, then newest first."""
    acknowledged_ids, since = acknowledged(context), time.time() - RECENT_SECONDS
    found = [
        InboxItem(
            id=f"ask/{ask.incident}/{ask.n}", kind="ask", at=ask.at, title="A recovery needs an answer", detail=ask.question,
            project=ask.project, incident=ask.incident, ask=ask,
        )
        for ask in asks(context, limit=MAX_ITEMS)
    ]  # fmt: skip
    for name, project, reason, at in blocked_incidents(context.journal, since, MAX_ITEMS):
        why = "nobody answered its question" if reason.startswith("nobody answered") else "it needs a person to go on"
        found.append(_item(f"blocked/{name}", "blocked", at, f"Blocked: {why}", reason, project, name))
    for parked in parked_incidents(context.journal, MAX_ITEMS):
        title = f"Parked until {format_moment(parked.until, time.time())}: a limit reopens then"
        item = _item(
            f"parked/{parked.id}/{parked.until:.0f}", "parked", parked.since, title, parked.message, parked.project, parked.id
        )  # fmt: skip
        found.append(item.model_copy(update={"parked_until": parked.until}))
    for crash in crashes(context.journal, since=since, limit=MAX_ITEMS):
        key, title = f"crash/{crash.incident}/{crash.n}", f"{crash.what} failed and was ignored"
        found.append(_item(key, "crash", crash.at, title, crash.error, crash.project, crash.incident))
    regressions = frozenset({grouped.GroupState.REGRESSION})
    for group in grouped.groups(context.journal, now=time.time(), states=regressions, limit=MAX_ITEMS):
        key = f"group/{group.project or '-'}/{group.fingerprint}/{group.said_at:.0f}"
        title = f"Regression: {group.kind} occurs again after it was resolved"
        found.append(_item(key, "group", group.last_at, title, group.message, group.project, group.example))
    for alert in budget_alerts(context):
        detail = f"{format_dollars(alert.spent)} of {format_dollars(alert.limit)} spent"
        title = f"{alert.alert} % of the {alert.scope} budget {alert.name} is spent"
        found.append(_item(alert.id, "budget", time.time(), title, detail, "", None))
    found += _tasks(context)
    waiting = [item for item in found if item.id not in acknowledged_ids]
    return sorted(waiting, key=lambda item: (item.kind not in ("ask", "task"), -item.at))


def _pool_item(crew: str, name: str, pool: Pool) -> InboxItem:
    """Return the item of a closed pool: a blocked one needs a person, one that waits can be woken."""
    is_blocked = pool.state is PoolState.BLOCKED
    title = f"Pool {name} of crew {crew} {'needs a person' if is_blocked else 'waits for its service'}"
    since = pool.since or 0.0
    key = f"pool/{crew}/{name}/{pool.state.value}/{since:.0f}"
    item = _item(key, "blocked" if is_blocked else "parked", since, title, describe(pool), crew, None)
    return item.model_copy(update={"parked_until": pool.until})


def _tasks(context: AppContext) -> list[InboxItem]:
    """Return the crew tasks that ask a question or were escalated, and the pools that are closed."""
    found: list[InboxItem] = []
    for crew in context.crews.names:
        with (
            suppress(ApiProblem),
            context.crews.open_table(crew) as table,
        ):  # an unavailable crew is reported on its own page
            found += [_pool_item(crew, name, pool) for name, pool in board.closed_pools(table).items()]
            for row in board.load_page(table, MAX_ITEMS, for_person=True).tasks:
                asks = row.note.startswith(ASKS_PREFIX)
                found.append(
                    InboxItem(
                        id=f"task/{crew}/{row.task_id}/{row.version}", kind="task",
                        at=parse_time(row.last_heartbeat) or 0.0,
                        title=f"{row.task_id} needs an answer" if asks else f"{row.task_id} was escalated",
                        detail=row.note.removeprefix(ASKS_PREFIX).strip(), project=crew, incident=None, ask=None,
                        task=f"{crew}/{row.task_id}",
                    )
                )  # fmt: skip
    return found


def _item(key: str, kind: str, at: float, title: str, detail: str, project: str, incident: str | None) -> InboxItem:
    return InboxItem(
        id=key,
        kind=kind,  # type: ignore[arg-type]  # a literal of InboxItem.kind
        at=at,
        title=title,
        detail=detail,
        project=project,
        incident=incident,
        ask=None,
    )


class WebhookNotifier:
    """Notifies the webhook once of each item that appears while the service runs; of several services, one does."""

    def __init__(self, context: AppContext, address: str) -> None:
        self._context = context
        self._dashboard_url = address
        self._name = secrets.token_hex(8)  # among the services that share the journal
        self._trouble = ""
        self._notified: set[str] = set()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start polling in a thread; items that exist already are not notified."""
        self._notified = {item.id for item in inbox_items(self._context)}
        threading.Thread(target=self._poll, name="rung-webhook", daemon=True).start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()

    def _poll(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            try:
                self.notify_new()
            except Exception as error:  # noqa: BLE001  # journal or webhook unavailable: the next poll tries again
                if self._trouble != (trouble := f"{type(error).__name__}: {error}"):
                    _LOG.warning("rung: webhook not notified: %s", trouble)
                    self._trouble = trouble

    def notify_new(self) -> None:
        """Send one notification for each new item."""
        webhook = (setting(self._context.journal, NOTIFICATIONS_SETTING).body or {}).get("webhook", "")
        for item in inbox_items(self._context):
            if item.id in self._notified:
                continue
            if not webhook or self._send(webhook, item):
                self._notified.add(item.id)

    def _send(self, webhook: str, item: InboxItem) -> bool:
        """Notify of an item, unless another service did; False while another one is about to."""
        journal = self._context.journal
        state = claim_notice(journal, item.id, self._name)
        if state is not NoticeState.MINE:
            return state is NoticeState.SENT
        link = f" <{self._dashboard_url}#/inbox|Open>"
        text = f"*{item.title}*\n{item.detail[:500]}\n{link}"
        try:
            post_webhook(webhook, json.dumps({"text": text}).encode(), self._context.webhook_hosts)
        except BaseException:
            settle_notice(journal, item.id, self._name, sent=False)
            raise
        settle_notice(journal, item.id, self._name, sent=True)
        return True
