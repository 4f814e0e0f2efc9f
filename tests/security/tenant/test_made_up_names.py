"""Names that clients make up cost neither memory nor work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rung
from rung.store.settings import put_setting
from tests.security.tenant.shared import Shared, asked
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_made_up_projects_share_one_policy(tmp_path: Path) -> None:
    """Projects without settings share the default policy; projects with settings have their own at once."""
    journal = rung.journal(tmp_path / "j.db")
    put_setting(journal, "policy/stored", {"backoff": {"base": 0.125}}, "ada")
    with Shared(journal=journal) as behind:
        gateway = behind.gateway
        assert gateway.policy("stored").backoff.base == 0.125
        for n in range(20):
            assert behind.post(f"/p/made-up-{n}/v1/messages", json=asked()).status_code == 200
        assert {id(gateway.policy(f"made-up-{n}")) for n in range(20)} == {id(gateway.policy(""))}
        put_setting(journal, "policy/made-up-1", {"backoff": {"base": 0.25}}, "ada")
        wait_until(lambda: gateway.policy("made-up-1").backoff.base == 0.25)
        assert gateway.policy("made-up-2") is gateway.policy("")
        journal.flush()
        names = {name for (name,) in journal.read("SELECT DISTINCT project FROM incident")}
        assert names == {f"made-up-{n}" for n in range(20)}


def test_made_up_models_and_credentials_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of circuits is bounded, whatever models, credentials and listed names clients send."""
    monkeypatch.setattr("rung.gateway.gateway.MAX_CIRCUITS", 5)
    with Shared() as behind, behind.http() as client:
        for n in range(8):
            client.post("/v1/messages", json=asked(f"made-up-{n}"))
            client.post("/v1/messages", json=asked(), headers={"authorization": f"Bearer {n}"})
            client.get(f"/v1/models/made-up-{n}")
        assert len(behind.gateway.breakers.items()) <= 5
