"""A real service on a real port, over a journal in which something happened."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import rung
from rung.core.policy.parser import parse_policy_file
from rung.service.app import make_app
from rung.service.app_context import AppContext
from rung.service.auth import Authenticator, add_token
from rung.service.crew_tables import CrewTables
from rung.service.replay import Replayers
from rung.service.routes.stream import EventBroadcaster
from rung.service.server import Server
from rung.store import open_journal
from rung.testing import HttpError, Script
from rung.wiring.policies import PolicyStore
from rung.wiring.request_origin import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.core.domain.request import Request
    from rung.store.journal.journal import Journal

TOKEN = "an administrator's token".replace(" ", "-")
SOON = 120.0
MODELS = [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.1}]


class Echo:
    """Makes recorded requests again: what it was asked, it says."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.fails: list[Exception] = []

    def supports(self, request: Request) -> bool:
        return request.model in ("small", "large")

    def __call__(self, request: Request) -> str:
        self.asked.append(request)
        if self.fails:
            raise self.fails.pop(0)
        return f"done by {request.model}"


class Running:
    """The service and a client for it."""

    def __init__(self, journal: Journal, url: str, context: AppContext, echo: Echo) -> None:
        self.journal, self.url, self.context, self.echo = journal, url, context, echo
        self._clients: list[httpx.Client] = []
        self.admin = self.client(TOKEN)

    def client(self, token: str = "", **settings: Any) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._clients.append(httpx.Client(base_url=self.url, headers=headers, timeout=SOON, **settings))
        return self._clients[-1]

    def browser(self, token: str = TOKEN) -> httpx.Client:
        """A signed-in browser: its cookie, and the CSRF token that its page keeps."""
        browser = self.client()
        browser.headers["x-rung-csrf"] = browser.post("/api/login", json={"token": token}).json()["csrf"]
        return browser

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def token(self, role: str) -> str:
        return add_token(self.journal, f"somebody who may {role}", role, days=None, by="test")

    def get(self, path: str, **query: Any) -> Any:
        answer = self.admin.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        answer = self.admin.post(path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "journal.db", project="shop") as opened:
        yield opened


@pytest.fixture
def places() -> list[str]:
    """The tables of the crews that are shown."""
    return []


@pytest.fixture
def service(journal: Journal, places: list[str], request: pytest.FixtureRequest) -> Iterator[Running]:
    """Up for one test; with the fixture `alerts`, if the test uses it."""
    alerts = request.getfixturevalue("alerts") if "alerts" in request.fixturenames else None
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    echo = Echo()
    policies = PolicyStore(journal, parse_policy_file({"policy": {"ladder": "model", "models": MODELS}}))
    replayers, crews = Replayers(journal, [echo]), CrewTables(places)
    context = AppContext(
        journal,
        Authenticator(journal, TOKEN),
        EventBroadcaster(journal),
        policies,
        replayers,
        "a journal",
        crews=crews,
        alerts=alerts,
    )
    server = Server(make_app(context, hosts=LOOPBACK_HOSTS, address=url), context.stream)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    running = Running(journal, url, context, echo)
    eventually(lambda: server.started)
    yield running
    running.close()
    context.stream.close()
    server.should_exit = True
    thread.join(SOON)
    assert not thread.is_alive()


@pytest.fixture
def past(journal: Journal, tmp_path: Path) -> None:
    """A session that failed, one that recovered, one that never failed, and one without a name."""
    quick: dict[str, Any] = {"backoff": {"base": 0}, "report": str(tmp_path / "blocked.md")}
    for name, items in (
        ("lost", [HttpError(401, "invalid x-api-key")]),
        ("saved", [HttpError(529, "overloaded"), "fine"]),
        ("good", ["fine"]),
    ):
        rung.recover_sync(
            Script(*items),
            rung.Request(prompt=f"the task of {name}", model="small", agent="tester"),
            policy=rung.policy("model", models=MODELS, confirm="never", **quick),
            journal=journal,
            session=rung.Session("small", name),
            breakers=rung.BreakerRegistry(),
            retry_budget=None,
        )
    assert journal.flush()


def eventually(look: Callable[[], Any], seconds: float = SOON) -> Any:
    """What it finds, once it does."""
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
    return found


def in_background(work: Callable[[], Any]) -> Callable[[], Any]:
    """Work in a thread; its result, when asked for."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(SOON)
        assert done, "it has not ended"
        return done[0]

    return result
