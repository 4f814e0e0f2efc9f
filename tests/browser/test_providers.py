"""Providers on the analytics page: upstreams of running gateways, with their keys, failures, translations and cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence
from rung.gateway.gateway import Gateway
from rung.gateway.outbound import Outbound
from rung.gateway.settings import settings_from
from rung.gateway.status import gateway_status
from rung.store.replay_orders import announce

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from playwright.sync_api import Page

    from tests.browser.conftest import Service
    from tests.browser.stage import Stage

ROW = {"type": "openai", "url": "https://llm.example.com/v1", "key_envs": ["KEY_A", "KEY_B"]}


def test_providers_are_shown(
    service: Service, stage: Stage, open_page: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each provider of a running gateway is a row with its state, keys, failures, translations and cost."""
    for name in ROW["key_envs"]:
        monkeypatch.setenv(name, f"value-of-{name}")
    gateway = Gateway(settings_from({"upstreams": {"main": ROW}}))
    (upstream,) = gateway.settings.upstreams
    outbound = Outbound(upstream, "/v1/chat/completions", [], b"", is_last_resort=False, model="small", wire="chat")
    limited = Evidence(text="Rate limit reached", status=429, retry_after=900.0)
    now = time.time()
    gateway.upstream_table.key_pool(upstream).note_failure("KEY_B", "small", classify(limited), now)
    gateway.health.note_failure(outbound, "chat", limited, now)
    gateway.health.note_success(outbound, "chat", 0.25, now)
    gateway.health.translated["main", "messages", "chat"] = 3
    gateway.health.dropped["main", "top_k"] = 2
    gateway.health.add_cost(("main", "small"), 1.5)
    announce(stage.journal, "gateway-test", {"main": True}, now, gateway_status(gateway))
    page = open_page(service, "/analytics")
    row = page.locator(".providers tbody tr").filter(has_text="main")
    expect(row).to_have_count(1)
    for text in ("openai", "llm.example.com", "ok", "KEY_A usable", "KEY_B limited", "in 1", "(small)", "rate limit 1"):
        expect(row).to_contain_text(text)
    for text in ("250 ms", "messages to chat 3", "dropped: top_k 2", "$1.50"):
        expect(row).to_contain_text(text)
    expect(page.locator("body")).not_to_contain_text("value-of-KEY")
