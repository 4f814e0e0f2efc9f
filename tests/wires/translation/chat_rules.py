"""Rules by which OpenAI's Chat Completions API rejects a request, as far as the request alone shows it."""

from __future__ import annotations

import re
from typing import Any

from rung.testing.provider.chat import parse_request
from tests.wires.translation.schema_rules import check_openai

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ITEMS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
    "system": ("text",),
}


def check(body: dict[str, Any]) -> None:
    """Fail if the API would reject this request."""
    parse_request(body)  # the lab's provider has rules of its own
    for message in body["messages"]:
        check_message(message)
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    assert all(TOOL_NAME.fullmatch(name) for name in names), names
    assert len(names) == len(set(names)), names
    for tool in body.get("tools", ()):
        check_openai(tool["function"]["parameters"], is_strict=bool(tool["function"].get("strict")))
    output = (body.get("response_format") or {}).get("json_schema") or {}
    if "schema" in output:
        check_openai(output["schema"], is_strict=bool(output.get("strict")), is_output=True)
    assert body.get("tools", True), "an empty list of tools"
    assert "tools" in body or not {"tool_choice", "parallel_tool_calls"} & set(body)
    choice = body.get("tool_choice")
    assert not isinstance(choice, dict) or choice["function"]["name"] in names
    assert len(body.get("stop") or ()) <= 4
    assert "n" not in body
    assert "top_k" not in body


def check_message(message: dict[str, Any]) -> None:
    role, content = message["role"], message.get("content")
    assert content is not None or role == "assistant"
    for item in content if isinstance(content, list) else ():
        assert item["type"] in ITEMS[role], (role, item["type"])
        check_item(item)
    assert content != []
    calls = message.get("tool_calls", ())
    assert content or calls or message.get("refusal") or role != "assistant" or content == ""
    ids = [call["id"] for call in calls]
    assert len(ids) == len(set(ids)), ids
    for call in calls:
        assert 0 < len(call["id"]) <= 40
        assert TOOL_NAME.fullmatch(call["function"]["name"]), call
        assert isinstance(call["function"]["arguments"], str)
    assert role != "tool" or isinstance(content, str)


def check_file(file: dict[str, Any]) -> None:
    """OpenAI knows the type of file data by the extension of its name."""
    if str(file.get("file_data")).startswith("data:application/pdf"):
        assert file["filename"].lower().endswith(".pdf"), file["filename"]


def check_item(item: dict[str, Any]) -> None:
    if item["type"] == "image_url":
        assert item["image_url"]["url"].startswith(("https://", "http://", "data:image/"))
    elif item["type"] == "file":
        assert item["file"].get("file_id") or (
            item["file"]["filename"] and item["file"]["file_data"].startswith("data:")
        )
        check_file(item["file"])
    elif item["type"] == "input_audio":
        assert item["input_audio"]["format"] in ("wav", "mp3")
