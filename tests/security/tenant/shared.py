"""Test rig: a gateway that holds the provider's key and is shared by tenants with keys of their own."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rung.core.policy.parser import parse_policy_file
from rung.gateway.keys import hash_key
from rung.gateway.settings import GatewaySettings, settings_from
from tests.gateway.behind import ASK, TIMEOUTS, Behind

if TYPE_CHECKING:
    import httpx

HELD_KEY = "sk-held-by-the-gateway"
HELD_KEY_ENV = "RUNG_TEST_HELD_KEY"
ALICE, BOB = "rung-key-of-alice", "rung-key-of-bob"
PRICES = {"cheap": {"input": 0.0, "output": 0.0}, "opus": {"input": 0.0, "output": 1_000.0}}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


def key_row(key: str, **more: Any) -> dict[str, Any]:
    """Return the row of a key in `[[gateway.keys]]`."""
    return {"hash": hash_key(key), **more}


def asked(model: str = "cheap", **more: Any) -> dict[str, Any]:
    """Return a body that is valid in each of the three APIs."""
    return {"max_tokens": 500, "messages": ASK, "input": ASK, "model": model, **more}


class Shared(Behind):
    """A lab, and a gateway in front of it that sends its own key upstream."""

    def settings(self, **more: Any) -> GatewaySettings:
        os.environ[HELD_KEY_ENV] = HELD_KEY
        held = {wire: {"wire": wire, "url": self.lab.url, "key_env": HELD_KEY_ENV} for wire in ("anthropic", "openai")}
        table = {"upstreams": held, "timeouts": TIMEOUTS, "port": 0, "prices": PRICES, **self._settings, **more}
        return settings_from(table, parse_policy_file({"policy": self.policy_table}))

    def post(self, path: str, key: str = ALICE, **options: Any) -> Any:
        """Send a request with a gateway key."""
        options["headers"] = {"x-api-key": key, **options.get("headers", {})}
        return self.client.post(path, **options)

    @cached_property
    def client(self) -> httpx.Client:
        """Return one client for all requests; another one costs as much as ten of them."""
        return self.http()
