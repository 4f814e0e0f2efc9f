"""Whatever a model puts out is an answer: it is not asked for again because it is no text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.security.upstream.scripted import Reply, chat, responses, written
from tests.wires.strict import PATHS, events_of, streamed

if TYPE_CHECKING:
    from tests.security.upstream.scripted import Rig

ITEMS: dict[str, dict[str, Any]] = {
    "custom_tool_call": {"call_id": "c_1", "name": "patch", "input": "*** Begin"},
    "local_shell_call": {"call_id": "c_1", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    "shell_call": {"call_id": "c_1", "action": {"commands": ["ls"]}},
    "apply_patch_call": {"call_id": "c_1", "operation": {"type": "delete_file", "path": "x"}},
    "computer_call": {"call_id": "c_1", "action": {"type": "screenshot"}, "pending_safety_checks": []},
    "mcp_approval_request": {"name": "go", "arguments": "{}", "server_label": "s"},
    "mcp_call": {"name": "go", "arguments": "{}", "server_label": "s", "output": "done"},
    "image_generation_call": {"result": "aGVsbG8="},
    "web_search_call": {"action": {"type": "search", "query": "x"}},
    "of_the_future": {},
}
DELTAS: dict[str, dict[str, Any]] = {
    "audio": {"audio": {"id": "a_1", "data": "aGVsbG8="}},
    "images": {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}]},
    "refusal": {"refusal": "no"},
    "parts": {"content": [{"type": "text", "text": "hello"}]},
    "function_call": {"function_call": {"name": "look", "arguments": "{}"}},
}


@pytest.mark.parametrize("kind", ITEMS)
def test_an_item_of_any_type(rig: Rig, kind: str) -> None:
    """A Responses stream whose only item is no message is one request, and the item reaches the client once."""
    item = {"type": kind, "id": "i_1", "status": "completed", **ITEMS[kind]}
    rig.upstream.use(Reply(written(responses(item))))
    text = rig.stream("responses")
    streamed("responses", text)
    done = [json.loads(data)["item"] for name, data in events_of(text) if name == "response.output_item.done"]
    assert (done, rig.asked) == ([item], 1)


@pytest.mark.parametrize("kind", ["custom_tool_call", "computer_call", "of_the_future"])
def test_a_call_is_not_made_twice(rig: Rig, kind: str) -> None:
    """A stream that breaks after a complete call that the client runs ends with that call."""
    item = {"type": kind, "id": "i_1", "status": "completed", **ITEMS[kind]}
    rig.upstream.use(Reply(written(responses(item)[:-1]), "cut"))
    text = rig.stream("responses")
    assert text.count("response.output_item.done") == 2  # name and type
    assert json.loads(events_of(text)[-1][1])["response"]["output"] == [item]
    assert rig.asked == 1


@pytest.mark.parametrize("kind", DELTAS)
def test_a_delta_of_any_kind(rig: Rig, kind: str) -> None:
    """A Chat Completions stream without text is one request, and its output reaches the client once."""
    rig.upstream.use(Reply(written(chat({"role": "assistant"}, DELTAS[kind]))))
    text = rig.stream("chat")
    assert text.count(json.dumps(DELTAS[kind])) == 1
    assert text.endswith("data: [DONE]\n\n")
    assert rig.asked == 1


def test_images_that_come_whole(rig: Rig) -> None:
    """A Chat Completions response whose message has images alone is one request."""
    message = {"role": "assistant", "content": "", **DELTAS["images"]}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {"id": "c_1", "object": "chat.completion", "model": "m", "created": 1, "choices": choices}
    rig.upstream.use(Reply(json.dumps(body).encode(), kind=b"application/json"))
    got = httpx.post(rig.url + PATHS["chat"], json={"model": "small", "messages": []}, timeout=60)
    assert (got.json(), rig.asked) == (body, 1)


@pytest.mark.parametrize("kind", ["audio", "images"])
def test_media_are_not_continued(rig: Rig, kind: str) -> None:
    """A stream that breaks after audio or images ends with an error: nothing can go on with them."""
    rig.upstream.use(Reply(written([*chat({"role": "assistant"}, DELTAS[kind])[:2]]), "cut"))
    text = rig.stream("chat")
    assert text.count(json.dumps(DELTAS[kind])) == 1
    assert "error" in json.loads(events_of(text)[-1][1])
    assert rig.asked == 1
