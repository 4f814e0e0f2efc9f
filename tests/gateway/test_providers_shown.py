"""Providers in the service: the gateways that run on a journal say there what they know about their upstreams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import rung
from rung.service.routes.providers import providers
from rung.store.replay_orders import PRESENT_SECONDS, announce, present_statuses, present_upstreams
from tests.gateway.pooled import KEYS, LIMITED, OK, ask, pool
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def test_a_gateway_says_its_status(tmp_path: Path) -> None:
    """A running gateway puts its status into the journal without a key; a gateway that has gone is no longer shown."""
    journal = rung.journal(tmp_path / "j.db")  # its gateway closes it
    with pool(lambda key: LIMITED if key == "KEY_B" else OK, "AB", journal=journal) as front:
        assert ask(front).status_code == 200
        statuses = wait_until(lambda: present_statuses(journal, time.time()))
        ((name, status),) = statuses.items()
        assert present_upstreams(journal, time.time()) == {"main": True}
        assert not any(value in str(status) for value in KEYS.values())
    with rung.journal(tmp_path / "j.db") as after:
        assert name.startswith("gateway-")
        assert present_statuses(after, time.time()) == {}


def test_the_route(tmp_path: Path) -> None:
    """The API shows the upstreams of every gateway; what a gateway of another version says otherwise is left out."""
    with pool(lambda _: OK, "AB") as front:
        assert ask(front).status_code == 200
        with front.http() as client:
            status = client.get("/status").json()
    now = time.time()
    with rung.journal(tmp_path / "j.db") as journal:
        newer = {**status, "upstreams": [{**status["upstreams"][0], "colour": "red"}, {"name": "unreadable"}]}
        announce(journal, "gateway-1", {"main": True}, now, status)
        announce(journal, "gateway-2", {"main": True}, now, newer)
        announce(journal, "gateway-3", {"main": True}, now)
        announce(journal, "gateway-4", {"main": True}, now - 2 * PRESENT_SECONDS, status)
        context: SimpleNamespace = type("C", (), {"journal": journal})  # type: ignore[assignment]
        shown = providers(context, None)  # type: ignore[arg-type]
    assert [(one.gateway, one.name, one.successes) for one in shown] == [
        ("gateway-1", "main", 1),
        ("gateway-2", "main", 1),
    ]
    assert [key.name for key in shown[0].keys] == ["KEY_A", "KEY_B"]
