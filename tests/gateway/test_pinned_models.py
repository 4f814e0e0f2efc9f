"""A model that a person chose for a session holds for its very next call through the gateway."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import rung
from rung.core.policy.parser import parse_policy_file
from rung.gateway.pinned_models import PinnedModels
from rung.service.app import make_app
from rung.service.app_context import AppContext
from rung.service.auth import Authenticator
from rung.service.replay import Replayers
from rung.service.routes.stream import EventBroadcaster
from rung.service.server import Server
from rung.wiring.policies import PolicyStore
from rung.wiring.request_origin import LOOPBACK_HOSTS
from tests.gateway.behind import LONG, Behind, messages
from tests.store.conftest import postgres_server, postgres_url
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

__all__ = ["postgres_server", "postgres_url"]  # fixtures
TOKEN = "token-of-an-administrator"
ROUNDS = int(os.environ.get("RUNG_RACES", "60"))
MODELS = [{"name": name, "cost": 0.01} for name in ("small", "medium", "large")]


@contextmanager
def service_over(journal: Journal) -> Iterator[httpx.Client]:
    """Run the real service over a journal; yield a client of it."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    policies = PolicyStore(journal, parse_policy_file({"policy": {"ladder": "model", "models": MODELS}}))
    context = AppContext(
        journal, Authenticator(journal, TOKEN), EventBroadcaster(journal), policies, Replayers(journal), "a journal"
    )
    server = Server(make_app(context, hosts=LOOPBACK_HOSTS, address=url), context.stream)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=LONG) as client:
        wait_until(lambda: server.started)
        yield client
    context.stream.close()
    server.should_exit = True
    thread.join(LONG)
    assert not thread.is_alive()


def escalate(service: httpx.Client, session: str, model: str) -> None:
    """Ask for an estimate and confirm it."""
    path = f"/api/sessions/{session}/escalate"
    estimate = service.post(path, json={"toModel": model})
    assert estimate.status_code == 200, estimate.text
    done = service.post(path, json={"confirm": estimate.json()["token"]})
    assert (done.status_code, done.json()["done"]) == (200, True), done.text


def is_known(service: httpx.Client, session: str) -> bool:
    return service.get(f"/api/sessions/{session}").status_code == 200


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_very_next_call_is_on_the_confirmed_model(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """In every round of confirming and calling at once, the call goes to the model that was just confirmed."""
    url = tmp_path / "j.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    rounds = ROUNDS if store == "sqlite" else ROUNDS // 4
    ordered, used = [], []
    with (
        rung.journal(url) as gateways_journal,
        rung.journal(url) as services_journal,
        Behind(journal=gateways_journal) as behind,
        service_over(services_journal) as service,
    ):
        client = behind.claude(default_headers={"x-rung-session": "s"})
        messages(client, stream=False)
        wait_until(lambda: is_known(service, "s"))
        for number in range(rounds):
            ordered.append(("large", "medium", "small")[number % 3])
            escalate(service, "s", ordered[-1])
            messages(client, stream=bool(number % 2))
            used.append(behind.lab.calls[-1].model)
    assert used == ordered


def test_a_session_that_only_its_conversation_names(tmp_path: Path) -> None:
    """A session without a name in the headers follows its confirmed model as well."""
    with (
        rung.journal(tmp_path / "j.db") as journal,
        Behind([{"fault": "overloaded", "request": 1}], journal=journal) as behind,
        service_over(journal) as service,
    ):
        client = behind.claude()
        messages(client, stream=False)  # fails once: a recovery records the session
        rows: list[Any] = wait_until(lambda: service.get("/api/sessions").json()["items"])
        session = rows[0]["id"]
        escalate(service, session, "large")
        messages(client, stream=False)
        assert (session.startswith("began-"), behind.lab.calls[-1].model) == (True, "large")


def test_a_journal_in_trouble_does_not_stop_a_call(tmp_path: Path) -> None:
    """If chosen models cannot be read, the call is made, and the log says so."""

    class BrokenJournal:
        def read(self, *_: object) -> list[Any]:
            raise OSError("disk gone")

    with rung.journal(tmp_path / "j.db") as journal, Behind(journal=journal) as behind:
        gateway = behind.gateway
        gateway.pinned_models = PinnedModels(BrokenJournal(), behind.log_lines.append)  # type: ignore[arg-type]  # only read from
        messages(behind.claude(default_headers={"x-rung-session": "s"}), stream=False)
        assert [call.model for call in behind.lab.calls] == ["small"]
        assert any("chosen models were not read: OSError" in line for line in behind.log_lines)
