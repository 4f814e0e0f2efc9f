"""Rules by which Anthropic's Messages API rejects a request, as far as the request alone shows it."""

from __future__ import annotations

import re
from typing import Any

from rung.testing.provider.messages import parse_request
from tests.wires.translation.schema_rules import check_anthropic

ID = re.compile(r"[a-zA-Z0-9_-]+")
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
THINKING = ("thinking", "redacted_thinking")
EFFORTS = {"low", "medium", "high", "xhigh", "max"}


def check(body: dict[str, Any]) -> None:
    """Fail if the API would reject this request."""
    parse_request(body)  # the lab's provider has rules of its own
    messages = body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    calls = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    assert len(calls) == len(set(calls))
    assert all(ID.fullmatch(call) for call in calls)
    open_calls: list[str] = []
    for message in messages:
        assert message["content"]
        kinds = [block["type"] for block in message["content"]]
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        assert results == open_calls
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        open_calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        for block in message["content"]:
            check_block(block, message["role"])
    for block in body.get("system", ()):
        assert block["text"].strip()
    assert not calls or body["tools"]
    names = [tool["name"] for tool in body.get("tools", ())]
    assert len(names) == len(set(names))
    assert "tools" in body or "tool_choice" not in body
    for tool in body.get("tools", ()):
        check_anthropic(tool)
    check_settings(body)
    breakpoints = [*body.get("system", ()), *body.get("tools", ()), *(b for m in messages for b in m["content"])]
    assert sum("cache_control" in block for block in breakpoints) <= 4


def check_block(block: dict[str, Any], role: str) -> None:
    kind = block["type"]
    if kind == "text":
        assert block["text"].strip()
    elif kind == "tool_use":
        assert role == "assistant"
        assert isinstance(block["input"], dict)
    elif kind == "tool_result":
        assert role == "user"
        content = block.get("content", ())
        for each in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            assert each["type"] in ("text", "image", "document")
            check_block(each, role)
    elif kind == "image":
        assert role == "user"
        source = block["source"]
        assert source["type"] == "url" or source["media_type"] in IMAGES
        assert source["type"] != "url" or source["url"].startswith("https://")
    else:
        assert kind in ("document", *THINKING)


def check_settings(body: dict[str, Any]) -> None:
    assert body["max_tokens"] >= 1
    assert 0 <= body.get("temperature", 0) <= 1
    assert not {"temperature", "top_p"} <= set(body)
    assert all(each.strip() for each in body.get("stop_sequences", ()))
    check_model(body)
    if "thinking" in body:
        assert not {"temperature", "top_p", "top_k"} & set(body)
        assert body.get("tool_choice", {}).get("type") not in ("any", "tool")
    if body.get("thinking", {}).get("type") == "enabled":
        assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]
        last = body["messages"][-1]["content"]
        if any(block["type"] == "tool_result" for block in last):
            assert body["messages"][-2]["content"][0]["type"] in THINKING


# By the name of a model: the kinds of thinking, the efforts, and whether it takes sampling parameters and forced calls.
MODELS: dict[str, tuple[set[str], set[str], bool, bool]] = {
    "claude-3-5-haiku-20241022": ({"disabled"}, set(), True, True),
    "claude-3-7-sonnet-20250219": ({"enabled", "disabled"}, set(), True, True),
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": ({"enabled", "disabled"}, set(), True, True),
    "claude-opus-4-6": ({"enabled", "adaptive", "disabled"}, {"low", "medium", "high", "max"}, True, True),
    "claude-opus-4-7": ({"adaptive"}, EFFORTS, False, True),
    "claude-sonnet-5": ({"adaptive", "disabled"}, EFFORTS, False, True),
    "claude-haiku-5-5": ({"adaptive", "between_tools"}, EFFORTS, False, True),
    "anthropic.claude-sonnet-5-5": ({"adaptive", "between_tools"}, EFFORTS, False, False),
    "claude-opus-5-5": ({"adaptive"}, EFFORTS, False, False),
    "claude-fable-5-2": ({"adaptive"}, EFFORTS, False, False),
}


def check_model(body: dict[str, Any]) -> None:
    """Fail if the model of this request would reject its settings."""
    if body["model"] not in MODELS:
        return
    thinking, efforts, has_sampling, has_forced_calls = MODELS[body["model"]]
    assert "thinking" not in body or body["thinking"]["type"] in thinking, body["thinking"]
    effort = body.get("output_config", {}).get("effort")
    assert effort is None or effort in efforts, effort
    assert has_sampling or not {"temperature", "top_p", "top_k"} & set(body)
    assert has_forced_calls or body.get("tool_choice", {}).get("type") not in ("any", "tool")
