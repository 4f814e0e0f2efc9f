"""Two services on one PostgreSQL journal: any of them serves the dashboard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import rung
from rung.core.policy.parser import parse_policy_file
from rung.core.policy.parser import policy as make_policy
from rung.engine.session import Session
from rung.service.app_context import AppContext
from rung.service.auth import Authenticator
from rung.service.replay import Replayers
from rung.service.routes.inbox import NOTIFICATIONS_SETTING, WebhookNotifier
from rung.service.routes.stream import EventBroadcaster
from rung.store import open_journal
from rung.store.settings import put_setting
from rung.testing import HttpError, Script
from rung.wiring.policies import PolicyStore
from tests.store.conftest import postgres_server, postgres_url
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

__all__ = ["postgres_server", "postgres_url"]  # fixtures
TOKEN = "the-token-that-all-services-share"
OTHER_TOKEN = "the-token-of-one-service-alone"
MODELS = [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.2}]


class ServiceProcess:
    """`rung serve` in a process of its own, and clients for it."""

    def __init__(self, journal_url: str, home: Path, token: str) -> None:
        home.mkdir()
        self.clients: list[httpx.Client] = []
        environment = {
            **os.environ, "RUNG_JOURNAL": journal_url, "RUNG_ADMIN_TOKEN": token, "XDG_DATA_HOME": str(home),
            "PYTHONUNBUFFERED": "1", "RUNG_FLEET_LEASE": "2",
        }  # fmt: skip
        words = [sys.executable, "-m", "rung", "serve", "--port", "0", "--no-gateway"]
        self.process = subprocess.Popen(
            words, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        found = next(filter(None, (re.search(r"(http://\S+?)/\?token=", line) for line in self.process.stdout)))
        self.url = found[1]
        self.admin = self.client(token)
        wait_until(self._is_up)

    def _is_up(self) -> bool:
        try:
            return self.admin.get("/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    def client(self, token: str = "", **settings: Any) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.clients.append(httpx.Client(base_url=self.url, headers=headers, timeout=120, **settings))
        return self.clients[-1]

    def get(self, path: str) -> Any:
        answer = self.admin.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def end(self) -> None:
        for client in self.clients:
            client.close()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def journal(postgres_url: str) -> Iterator[Journal]:
    with open_journal(postgres_url, project="shop") as opened:
        yield opened


@contextmanager
def services(postgres_url: str, tmp_path: Path, *tokens: str) -> Iterator[list[ServiceProcess]]:
    """Services in processes of their own, each with a home of its own, as on several hosts."""
    started: list[ServiceProcess] = []
    try:
        for number, token in enumerate(tokens):
            started.append(ServiceProcess(postgres_url, tmp_path / f"host-{number}", token))
        yield started
    finally:
        for each in started:
            each.end()


def _recover(journal: Journal, session: str, attempt: Any, **ports: Any) -> Any:
    policy = make_policy("model", models=MODELS, confirm="always", backoff={"base": 0}, report="")
    request = rung.Request(prompt="Fix the cart", model="small", agent="coder", idempotent=True)
    return rung.recover_sync(
        attempt, request, policy=policy, journal=journal, session=Session("small", session), **ports
    )  # fmt: skip


def too_long(request: rung.Request) -> str:
    """Fail with the small model, so that the large one, which costs more, must be approved."""
    if request.model == "small":
        raise HttpError(400, "prompt is too long: 212411 tokens > 200000 maximum")
    return "done by the large one"


def test_both_show_the_same_and_take_orders(postgres_url: str, journal: Journal, tmp_path: Path) -> None:
    """Sessions, policies and the fleet are the same on both; what one is told, the other shows."""
    _recover(journal, "saved", Script(HttpError(529, "overloaded"), "fine"))
    journal.flush()
    policy = {"ladder": "model", "models": MODELS}
    with services(postgres_url, tmp_path, TOKEN, TOKEN) as (one, other):
        assert [row["id"] for row in one.get("/api/sessions")["items"]] == ["saved"]
        assert one.get("/api/sessions")["items"] == other.get("/api/sessions")["items"]

        given = one.admin.put("/api/retry-policy", json={"settings": policy}, headers={"If-Match": '"0"'})
        assert given.status_code == 200, given.text
        read = other.admin.get("/api/retry-policy")
        assert (read.json(), read.headers["etag"]) == (given.json(), given.headers["etag"])
        assert (
            other.admin.put("/api/retry-policy", json={"settings": policy}, headers={"If-Match": '"0"'}).status_code
            == 412
        )

        fleets = [each.get("/api/fleet")["executors"] for each in (one, other)]
        pids = sorted((one.process.pid, other.process.pid))
        assert [sorted(row["pid"] for row in fleet) for fleet in fleets] == [pids, pids]
        assert {row["role"] for row in fleets[0]} == {"service"}


def test_a_question_is_answered_at_any_service(postgres_url: str, journal: Journal, tmp_path: Path) -> None:
    """Both show a question; the answer that one of them takes continues the recovery and clears both inboxes."""
    ended: list[Any] = []

    def recover() -> None:
        ended.append(_recover(journal, "asks", too_long, ask=journal.operator_prompt(120.0)))

    with services(postgres_url, tmp_path, TOKEN, TOKEN) as (one, other):
        agent = threading.Thread(target=recover)
        agent.start()
        items = wait_until(lambda: one.get("/api/inbox"))
        assert other.get("/api/inbox") == items
        (item,) = items
        said = other.admin.post(f"/api/incidents/{item['incident']}/answer", json={"option": "approve"})
        assert said.status_code == 200, said.text
        agent.join()
        assert [outcome.value for outcome in ended] == ["done by the large one"]
        assert one.get("/api/inbox") == other.get("/api/inbox") == []


def test_who_signed_in_at_one_is_signed_in_at_the_other(postgres_url: str, journal: Journal, tmp_path: Path) -> None:
    """With one administrator's token, cookies and stored tokens of one service are accepted by the other."""
    with services(postgres_url, tmp_path, TOKEN, TOKEN) as (one, other):
        browser = one.client()
        csrf = browser.post("/api/login", json={"token": TOKEN}).json()["csrf"]
        moved = other.client(cookies=dict(browser.cookies))
        moved.headers["x-rung-csrf"] = csrf
        assert moved.get("/api/me").json()["role"] == "admin"
        made = one.admin.post("/api/tokens", json={"name": "Ada", "role": "act"}).json()["token"]
        assert other.client(made).get("/api/me").json()["name"] == "Ada"
        one.process.kill()  # the other one goes on
        assert moved.get("/api/fleet").status_code == 200


def test_services_with_different_tokens_share_stored_tokens_alone(
    postgres_url: str, journal: Journal, tmp_path: Path
) -> None:
    """Without a common administrator's token, a stored token is accepted by both, but a cookie by its own service alone."""
    with services(postgres_url, tmp_path, TOKEN, OTHER_TOKEN) as (one, other):
        made = one.admin.post("/api/tokens", json={"name": "Ada", "role": "act"}).json()["token"]
        browser = one.client()
        csrf = browser.post("/api/login", json={"token": made}).json()["csrf"]
        assert other.client(made).get("/api/me").status_code == 200
        assert other.client(TOKEN).get("/api/me").status_code == 401
        moved = other.client(cookies=dict(browser.cookies))
        moved.headers["x-rung-csrf"] = csrf
        assert moved.get("/api/me").status_code == 401


# -- the webhook --------------------------------------------------------------------------------------


class Hook:
    """A webhook that can be out of order."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if hook.status == 200:
                    hook.said.append(body)
                self.send_response(hook.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def _notifier(journal: Journal) -> WebhookNotifier:
    context = AppContext(
        journal, Authenticator(journal, TOKEN), EventBroadcaster(journal), PolicyStore(journal, parse_policy_file({})),
        Replayers(journal, []), "a journal", webhook_hosts=frozenset({"127.0.0.1"}),
    )  # fmt: skip
    return WebhookNotifier(context, "http://service/")


def test_one_of_several_services_notifies(postgres_url: str, journal: Journal, hook: Hook) -> None:
    """Of two services, one tells the webhook of an item; one that cannot leaves it to the next that can."""
    put_setting(journal, NOTIFICATIONS_SETTING, {"webhook": hook.url}, "test")
    with open_journal(postgres_url) as second:
        notifiers = [_notifier(each) for each in (journal, second)]
        _recover(journal, "lost", too_long)  # nobody is asked: blocked
        journal.flush()
        hook.status = 500
        with pytest.raises(Exception, match="500"):
            notifiers[0].notify_new()
        hook.status = 200
        both = [threading.Thread(target=each.notify_new) for each in notifiers]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        for each in notifiers:
            each.notify_new()
    assert len(hook.said) == 1
