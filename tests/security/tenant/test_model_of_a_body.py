"""The model and the stream flag of a body are those of its top level, as the upstream reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.security.tenant.shared import ALICE, PATHS, Shared, asked, key_row

TOOL_INPUT = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"model": "cheap"}}],
}
HIDING: tuple[dict[str, Any], ...] = (
    {"metadata": {"model": "cheap"}, "model": "opus"},
    {"metadata": {"user_id": '"model": "cheap"'}, "model": "opus"},
    {"model": "opus", "metadata": {"model": "cheap"}},
    {"padding": "x" * 5_000, "tool": TOOL_INPUT, "model": "opus", "more": "x" * 5_000},
)


@pytest.mark.parametrize("path", PATHS.values())
def test_a_nested_model_sets_no_price(path: str) -> None:
    """A model named inside another value is neither checked nor priced in place of the top-level one."""
    rest = {key: value for key, value in asked().items() if key != "model"}
    spent = [0.0]
    with Shared(keys=[key_row(ALICE, dollars=1_000.0)]) as behind:
        for hiding in HIDING:
            assert behind.post(path, content=json.dumps({**hiding, **rest})).status_code == 200
            spent.append(behind.gateway.metrics.counts["rung_dollars_total", ""])
        assert spent == sorted(set(spent))
        assert {call.model for call in behind.lab.calls} == {"opus"}


@pytest.mark.parametrize("second", [b'"model"', b'"mod\\u0065l"'])
def test_a_body_with_two_models(second: bytes) -> None:
    """The upstream gets the one model that was checked, even if the body names two."""
    body = json.dumps(asked("opus")).encode()[:-1] + b", " + second + b': "cheap"}'
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        assert behind.post("/v1/messages", content=body).status_code == 200
        (call,) = behind.lab.calls
        assert call.body.count(b"model") == 1
        assert call.json["model"] == "cheap"


def test_a_model_that_is_no_name() -> None:
    """A model that is not a text is refused to a key with models, and breaks nothing otherwise."""
    models: tuple[Any, ...] = (None, 7, ["cheap"], {"name": "cheap"}, "", "x" * 100_000)
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        for model in models:
            assert behind.post("/v1/messages", json=asked(model)).status_code == 403
        assert behind.served.reload_settings(lambda: behind.settings(keys=[]))
        for model in models:
            assert behind.post("/v1/messages", json=asked(model)).status_code < 500


@pytest.mark.parametrize("path", PATHS.values())
def test_a_nested_stream_flag(path: str) -> None:
    """A plain call whose body holds `"stream": true` in a nested value gets its whole response, without pings."""
    slow = {"fault": "slow", "seconds": 0.4, "request": 1}
    nested = asked("cheap", metadata={"stream": True, "note": '"stream": true'})
    with Shared([slow], header_hold_seconds=0.05) as behind:
        got = behind.post(path, json=nested)
        assert (got.status_code, got.headers["content-type"]) == (200, "application/json")
        assert isinstance(got.json(), dict)
