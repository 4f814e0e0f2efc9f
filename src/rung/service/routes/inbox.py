"""Everything that waits for a person, and telling them: over HTTP, and by a webhook."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fastapi import APIRouter

from rung.core.crew.contract import ASKS
from rung.core.domain.errors import ConfigError
from rung.service.app_context import Admin, AppContext, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.budgets import acknowledged, budget_alerts
from rung.service.routes.crews import parse_time
from rung.service.routes.incidents import asks
from rung.service.schemas.inbox import InboxItem, NotificationsIn
from rung.store.crew import board
from rung.store.queries import groups as grouped
from rung.store.queries.inbox import blocked_incidents
from rung.store.queries.listing import crashes
from rung.store.settings import put_setting, setting

if TYPE_CHECKING:
    from collections.abc import Callable

router = APIRouter(prefix="/api", tags=["inbox"], responses=PROBLEM_RESPONSES)

NOTIFY: Final = "notifications"
RECENT: Final = 7 * 86_400.0
MOST: Final = 100
POLL_SECONDS: Final = 5.0  # seconds between looks for something to tell


@router.get("/inbox")
def inbox(hub: Context, _: Reader) -> list[InboxItem]:
    """What waits for a person, the newest first."""
    return inbox_items(hub)


@router.get("/notifications")
def notifications(hub: Context, _: Admin) -> NotificationsIn:
    """Where people are told."""
    return NotificationsIn(**(setting(hub.journal, NOTIFY).body or {}))


@router.put("/notifications")
def change_notifications(wanted: NotificationsIn, hub: Context, who: Admin) -> NotificationsIn:
    """Say where people are told. What is told there has no prompt in it."""
    parts = urlsplit(wanted.webhook)
    if wanted.webhook and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ConfigError("webhook", wanted.webhook, "an http or https address, or nothing")
    put_setting(hub.journal, NOTIFY, wanted.model_dump(), who.name)
    return wanted


def inbox_items(hub: AppContext) -> list[InboxItem]:
    """All that waits."""
    seen, since = acknowledged(hub), time.time() - RECENT
    found = [
        InboxItem(
            id=f"ask/{ask.incident}/{ask.n}", kind="ask", at=ask.at, title="A recovery asks", detail=ask.question,
            project=ask.project, incident=ask.incident, ask=ask,
        )
        for ask in asks(hub, limit=MOST)
    ]  # fmt: skip
    for name, project, reason, at in blocked_incidents(hub.journal, since, MOST):
        found.append(_item(f"blocked/{name}", "blocked", at, "Blocked: nobody was there to ask", reason, project, name))
    for crash in crashes(hub.journal, since=since, limit=MOST):
        key, title = f"crash/{crash.incident}/{crash.n}", f"{crash.what} broke and was ignored"
        found.append(_item(key, "crash", crash.at, title, crash.error, crash.project, crash.incident))
    back = frozenset({grouped.GroupState.REGRESSION})
    for group in grouped.groups(hub.journal, now=time.time(), states=back, limit=MOST):
        key = f"group/{group.project or '-'}/{group.fingerprint}/{group.said_at:.0f}"
        title = f"{group.kind} is back after it was resolved"
        found.append(_item(key, "group", group.last_at, title, group.message, group.project, group.example))
    for alert in budget_alerts(hub):
        detail = f"${alert.spent:.2f} of ${alert.limit:.2f} spent"
        title = f"{alert.alert} % of the {alert.scope} budget {alert.name} is spent"
        found.append(_item(alert.id, "budget", time.time(), title, detail, "", None))
    found += _tasks(hub)
    waiting = [item for item in found if item.id not in seen]
    return sorted(waiting, key=lambda item: (item.kind not in ("ask", "task"), -item.at))


def _tasks(hub: AppContext) -> list[InboxItem]:
    """Tasks of a crew that ask, or were given up."""
    found = []
    for crew in hub.crews.names:
        with suppress(ApiProblem), hub.crews.open_table(crew) as table:  # a crew in trouble says so on its own page
            for row in board.load_page(table, MOST, for_person=True).tasks:
                asks = row.note.startswith(ASKS)
                found.append(
                    InboxItem(
                        id=f"task/{crew}/{row.task_id}/{row.version}", kind="task",
                        at=parse_time(row.last_heartbeat) or 0.0,
                        title=f"{row.task_id} asks" if asks else f"{row.task_id} was given up",
                        detail=row.note.removeprefix(ASKS).strip(), project=crew, incident=None, ask=None,
                        task=f"{crew}/{row.task_id}",
                    )
                )  # fmt: skip
    return found


def _item(key: str, kind: str, at: float, title: str, detail: str, project: str, incident: str | None) -> InboxItem:
    return InboxItem(
        id=key,
        kind=kind,  # type: ignore[arg-type]  # one of ours
        at=at,
        title=title,
        detail=detail,
        project=project,
        incident=incident,
        ask=None,
    )


class WebhookNotifier:
    """Tells the webhook, once for each item, what begins to wait while the service runs."""

    def __init__(self, hub: AppContext, address: str, send: Callable[[str, bytes], object] | None = None) -> None:
        self._hub = hub
        self._address = address
        self._send = send or _post
        self._told: set[str] = set()
        self._ended = threading.Event()

    def start(self) -> None:
        """From now on."""
        self._told = {item.id for item in inbox_items(self._hub)}
        threading.Thread(target=self._work, name="rung-teller", daemon=True).start()

    def stop(self) -> None:
        """No more."""
        self._ended.set()

    def _work(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            with suppress(Exception):  # a journal or a webhook in trouble: looked again, told again
                self.notify_new()

    def notify_new(self) -> None:
        """What is new since the last time."""
        webhook = (setting(self._hub.journal, NOTIFY).body or {}).get("webhook", "")
        for item in inbox_items(self._hub):
            if item.id in self._told:
                continue
            if webhook:
                where = f" <{self._address}#/inbox|Open>"
                self._send(webhook, json.dumps({"text": f"*{item.title}*\n{item.detail[:500]}\n{where}"}).encode())
            self._told.add(item.id)


def _post(address: str, body: bytes) -> None:
    asked = urllib.request.Request(address, body, {"content-type": "application/json"}, method="POST")  # noqa: S310  # checked when set
    with urllib.request.urlopen(asked, timeout=10):  # noqa: S310
        pass
