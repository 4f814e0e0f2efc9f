"""Budgets survive a restart, match the service, and limit fallbacks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

import rung
from rung.core.domain import events as ev
from rung.gateway.keys import new_key
from rung.service.spending import Spending
from rung.store.queries.spend import spent_in_month
from rung.store.settings import put_setting
from tests.gateway.behind import WHOLE, Behind, messages
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

PRICES = {"small": {"input": 0.0, "output": 1_000.0}, "large": {"input": 0.0, "output": 2_000.0}}  # 4 and 8 cents


def asked(behind: Behind, session: str = "s", **more: Any) -> str:
    client = behind.claude(default_headers={"x-rung-session": session, "x-rung-project": "site"})
    return messages(client, stream=False, **more).text


def test_a_budget_outlives_its_process(tmp_path: Path) -> None:
    """A session's spend survives a restart; alerts are not repeated."""
    with Behind(budgets={"session": 0.05}, prices=PRICES, journal=rung.journal(tmp_path / "j.db")) as behind:
        assert asked(behind) == WHOLE
        assert any("75 % of $0.05" in line for line in behind.log_lines)
    with Behind(budgets={"session": 0.05}, prices=PRICES, journal=rung.journal(tmp_path / "j.db")) as behind:
        assert asked(behind) == WHOLE  # 4 of 5 cents were spent
        assert not any("75 %" in line for line in behind.log_lines)
        assert any("100 %" in line for line in behind.log_lines)
        with pytest.raises(anthropic.RateLimitError, match="spend limit"):
            asked(behind)
        assert behind.attempts == 1
    with Behind(budgets={"session": 0.05}, prices=PRICES, journal=rung.journal(tmp_path / "j.db")) as behind:
        with pytest.raises(anthropic.RateLimitError, match="spend limit"):
            asked(behind)
        assert asked(behind, "another") == WHOLE


def test_what_people_set_holds(tmp_path: Path) -> None:
    """A budget set in the service applies to the gateway, with the service's numbers."""
    journal = rung.journal(tmp_path / "j.db")
    with Behind(prices=PRICES, journal=journal) as behind:
        asked(behind)
        journal.flush()
        assert spent_in_month(journal, time.time()) == {"site": pytest.approx(0.04)}
        put_setting(journal, "budgets", {"projects": {"site": 0.04}, "monthly": 10.0}, "ada")
        assert Spending(journal).left("s", "site") == pytest.approx(0.0)
        wait_until(lambda: behind.gateway.ledger.limits.projects)
        with pytest.raises(anthropic.RateLimitError, match="project is spent"):
            asked(behind)
        put_setting(journal, "budgets", {"projects": {}, "monthly": 10.0}, "ada")
        wait_until(lambda: not behind.gateway.ledger.limits.projects)
        assert asked(behind) == WHOLE


def test_a_keys_dollars_outlive_the_process(tmp_path: Path) -> None:
    """A key's spend survives a restart."""
    key, digest = new_key()
    keys = [{"hash": digest, "dollars": 0.05}]
    for attempts in (2, 0):
        with Behind(keys=keys, prices=PRICES, journal=rung.journal(tmp_path / "j.db")) as behind:
            client = anthropic.Anthropic(base_url=behind.url, api_key=key, max_retries=0)
            for _ in range(attempts):
                messages(client, stream=False)
            with pytest.raises(anthropic.RateLimitError, match="for this key is spent"):
                messages(client, stream=False)
            client.close()
            assert behind.attempts == attempts


def test_an_order_is_obeyed_while_it_waits(tmp_path: Path) -> None:
    """Moving a session to another model ends the wait before a retry, and the other model answers."""
    journal = rung.journal(tmp_path / "j.db")
    rules = [{"fault": "rate_limit", "model": "small", "retry_after": 30}]
    with Behind(rules, journal=journal, policy={"models": ["small", "large"]}) as behind:
        got: list[str] = []
        work = threading.Thread(target=lambda: got.append(asked(behind)))
        work.start()
        found = wait_until(lambda: journal.read("SELECT id FROM incident WHERE session = 's' AND status = 'open'"))
        journal.runs.send(f"order/{found[0][0]}", {"action": "retry", "by": "ada", "model": "large"})
        work.join()
        assert got == [WHOLE]
        assert [call.model for call in behind.lab.calls] == ["small", "large"]
        journal.flush()
        assert any(isinstance(event, ev.Ordered) for event in journal.events(found[0][0]))


def test_what_is_not_written_down_is_paid_all_the_same(tmp_path: Path) -> None:
    """Calls beyond journaled_per_second only have their cost journaled, without loss."""
    with Behind(prices=PRICES, journal=rung.journal(tmp_path / "j.db"), journaled_per_second=1) as behind:
        for _ in range(4):
            asked(behind)
    journal = rung.journal(tmp_path / "j.db")
    assert spent_in_month(journal, time.time()) == {"site": pytest.approx(0.16)}
    journal.close()


def test_a_fallback_without_a_price_is_named_at_start() -> None:
    """Under a budget, a listed model whose price nobody knows never answers: the gateway says so before it is needed."""
    policy = {"models": ["claude-haiku-4-5", "claude-hiaku-5"]}
    with Behind([], policy=policy, budgets={"project": 1.0}) as behind:
        line = wait_until(lambda: next((line for line in behind.log_lines if "is unknown" in line), ""))
    assert "'claude-hiaku-5'" in line
    assert not any("'claude-haiku-4-5'" in line for line in behind.log_lines)
