"""Rules by which OpenAI's Responses API rejects a request, as far as the request alone shows it."""

from __future__ import annotations

import re
from typing import Any

from rung.testing.provider.responses import parse_request
from tests.wires.translation.chat_rules import check_file
from tests.wires.translation.schema_rules import check_openai

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CONTENT = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "developer": ("input_text", "input_image", "input_file", "input_audio"),
    "assistant": ("output_text", "refusal"),
}


def check(body: dict[str, Any]) -> None:
    """Fail if the API would reject this request."""
    parse_request(body)  # the lab's provider has rules of its own
    open_calls: list[str] = []
    for item in body["input"]:
        check_item(item)
        if item["type"] == "function_call":
            open_calls.append(item["call_id"])
        elif item["type"] == "function_call_output":
            assert item["call_id"] in open_calls, item
            open_calls.remove(item["call_id"])
    assert not open_calls
    names = [tool["name"] for tool in body.get("tools", ()) if tool["type"] == "function"]
    assert all(TOOL_NAME.fullmatch(name) for name in names), names
    assert len(names) == len(set(names)), names
    for tool in body.get("tools", ()):
        check_openai(tool["parameters"], is_strict=tool["strict"])
    output = body.get("text", {}).get("format", {})
    if "schema" in output:
        check_openai(output["schema"], is_strict=bool(output.get("strict")), is_output=True)
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        chosen = [choice] if choice["type"] == "function" else choice["tools"]
        assert {tool["name"] for tool in chosen} <= set(names), (choice, names)
    assert choice is None or names, choice
    assert not {"stop", "seed", "top_k", "n", "presence_penalty", "frequency_penalty"} & set(body)
    assert body.get("max_output_tokens", 16) >= 16


def check_item(item: dict[str, Any]) -> None:
    if item["type"] == "message":
        assert item["content"]
        for part in item["content"]:
            assert part["type"] in CONTENT[item["role"]], (item["role"], part["type"])
            check_part(part)
    elif item["type"] == "function_call":
        assert 0 < len(item["call_id"]) <= 64
        assert TOOL_NAME.fullmatch(item["name"]), item
        assert isinstance(item["arguments"], str)
    else:
        assert item["type"] == "function_call_output", item["type"]
        output = item["output"]
        assert isinstance(output, str) or output
        for part in output if isinstance(output, list) else ():
            assert part["type"] in ("input_text", "input_image", "input_file")
            check_part(part)


def check_part(part: dict[str, Any]) -> None:
    if part["type"] == "input_image":
        assert part.get("file_id") or part["image_url"].startswith(("https://", "http://", "data:image/"))
    elif part["type"] == "input_file":
        assert part.get("file_id") or part.get("file_url") or (part["filename"] and part["file_data"])
        check_file(part)
