"""What a person starts or orders in the service is paid from the budgets that hold for agents."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.provider_client import ProviderClient
from rung.core.policy.spend_limits import SpendLimits
from rung.service.spending import Spending
from rung.store.queries.spend import spent_in_month
from rung.store.settings import put_setting
from rung.store.spend_holds import held_by_others
from rung.testing import HttpError
from rung.testing.provider import Lab
from tests.service.conftest import eventually, journal, past, places, service  # noqa: F401  # fixtures
from tests.service.test_acts import waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.service.conftest import Running

PRICES = {"small": {"input": 0.0, "output": 25_000.0}, "large": {"input": 0.0, "output": 25_000.0}}


@pytest.fixture
def lab(service: Running) -> Iterator[Lab]:  # noqa: F811  # a fixture
    """A provider that the service's own client replays requests to."""
    with Lab(delay=0.2) as provider:
        replayers = service.context.replayers
        replayers.replayers[:] = [ProviderClient("openai", provider.url, "a-key")]
        replayers.spending = Spending(service.journal, prices=PRICES)
        yield provider


def test_a_replay_is_paid(service: Running, past: None, lab: Lab) -> None:  # noqa: F811
    """A replay's cost is in the journal, and what it reserved is free again."""
    service.post("/api/sessions/lost/retry", {"mode": "plain"}, 202)
    eventually(lambda: sum(spent_in_month(service.journal, time.time()).values()) > 0)
    used = sum(call.tokens for call in lab.calls)
    assert sum(spent_in_month(service.journal, time.time()).values()) == pytest.approx(used / 40)
    eventually(lambda: not held_by_others(service.journal, "", time.time()).present)


def test_parallel_replays_share_a_budget(service: Running, past: None, lab: Lab) -> None:  # noqa: F811
    """Of ten replays at once, each reserved before it starts, one is made; the others are told what is left."""
    put_setting(service.journal, "budgets", {"session": 0.005}, "ada")  # the policy lists a cost of 0.01 for each
    with ThreadPoolExecutor(10) as people:
        path = "/api/sessions/lost/retry"
        answers = list(people.map(lambda _: service.admin.post(path, json={"mode": "plain"}), range(10)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 9
    refused = next(answer.json()["detail"] for answer in answers if answer.status_code == 409)
    assert "for this session are reserved by calls in flight" in refused
    eventually(lambda: not held_by_others(service.journal, "", time.time()).present)
    assert len(lab.calls) == 1
    assert "it does not renew" in service.post(path, {"mode": "plain"}, 409)["detail"]


def test_limits_of_the_file_bind_replays(service: Running, past: None, lab: Lab) -> None:  # noqa: F811
    """A month's limit of the gateway's file binds what the service starts, too."""
    service.context.replayers.spending = Spending(service.journal, SpendLimits(month=0.0), PRICES)
    refused = service.post("/api/sessions/lost/retry", {"mode": "plain"}, 409)["detail"]
    assert "budget of $0.00 for this month is spent (spend limit): $0.00 left; it renews on " in refused
    assert not lab.calls


def test_a_replay_of_unknown_price_is_refused(service: Running, past: None, lab: Lab) -> None:  # noqa: F811
    """With a limit, a model whose price nobody knows is not called."""
    put_setting(service.journal, "budgets", {"session": 5.0}, "ada")
    refused = service.post("/api/sessions/lost/retry", {"mode": "model", "model": "mystery"}, 409)["detail"]
    assert refused.startswith("the price of mystery is unknown, and this session has a spend limit: set its `cost`")
    assert not lab.calls


def test_orders_are_reserved(service: Running) -> None:  # noqa: F811
    """A retry or an escalation that another process carries out is refused where the budget is spent."""
    result, script = waiting(service, HttpError(503, "busy"), "fine")
    put_setting(service.journal, "budgets", {"session": 0.0}, "ada")
    assert "for this session is spent" in service.post("/api/sessions/s-1/retry", {"mode": "plain"}, 409)["detail"]
    assert service.post("/api/sessions/s-1/escalate", {}, 409)
    put_setting(service.journal, "budgets", {"session": 0.15}, "ada")
    token = service.post("/api/sessions/s-1/escalate", {})["token"]
    assert service.post("/api/sessions/s-1/escalate", {"confirm": token})["done"]
    assert result().status == "recovered"
    assert len(script.requests) == 2
    held = held_by_others(service.journal, "", time.time()).held
    assert held == {"budget/session/s-1": pytest.approx(0.1)}
