"""What a client refers to exists at the provider, or the reference is rewritten on its way."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.behind import ASK, RESPONSES_TOOL, WHOLE, Behind
from tests.gateway.scripted import scripted, stream, whole
from tests.gateway.test_thinking import RESPONSE


def text_of(items: Any) -> str:
    return "".join(part["text"] for item in items for part in item.get("content", ()) if isinstance(part, dict))


def test_references_after_a_splice() -> None:
    """After a spliced stream, ids of the broken attempt are replaced: the response by the one that is kept, its text by itself."""
    with Behind([{"fault": "cut", "after": 7, "request": 1}]) as behind:
        gpt = behind.gpt()
        with gpt.responses.stream(model="small", input=ASK[0]["content"], max_output_tokens=4_000) as events:
            first: Any = events.get_final_response()
        assert first.output_text == WHOLE
        (item,) = first.output
        reference: Any = [{"type": "item_reference", "id": item.id}, {"role": "user", "content": "go on"}]
        gpt.responses.with_raw_response.create(model="small", input=reference)
        sent = behind.lab.requests[-1].json
        assert text_of(sent["input"]) == WHOLE
        assert "item_reference" not in str(sent["input"])
        chained = gpt.responses.with_raw_response
        try:
            chained.create(model="small", input="go on", previous_response_id=first.id)
        finally:
            assert behind.lab.requests[-1].json["previous_response_id"] not in (None, first.id)
        other = behind.gpt(default_headers={"x-auth-token": "another"})
        try:
            other.responses.create(model="small", input="go on", previous_response_id=first.id)
        finally:
            assert behind.lab.requests[-1].json["previous_response_id"] == first.id


def test_references_after_a_settled_tool_call() -> None:
    """After a stream that broke behind a complete call, the call is sent whole, and the response as what it answered."""
    call = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "x"}'}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**RESPONSE, "id": "resp_1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": call},
    ]
    broken = stream(*({**event, "sequence_number": number} for number, event in enumerate(events)), cut=True)
    end = whole({**RESPONSE, "id": "resp_2", "status": "completed", "output": [], "usage": None})
    with scripted(broken, end, policy={"retries": 0}) as front, front.http() as client:
        told = {"model": "small", "input": ASK, "tools": [RESPONSES_TOOL]}
        assert '"response.completed"' in client.post("/v1/responses", json={**told, "stream": True}).text
        result = {"type": "function_call_output", "call_id": "c1", "output": "seen"}
        client.post("/v1/responses", json={**told, "input": [{"type": "item_reference", "id": "fc_1"}, result]})
        sent = front.bodies()[-1]["input"]
        assert (sent[0]["type"], sent[0]["call_id"], "id" in sent[0]) == ("function_call", "c1", False)
        client.post("/v1/responses", json={**told, "input": [result], "previous_response_id": "resp_1"})
        last = front.bodies()[-1]
        assert last["previous_response_id"] is None
        assert [item.get("type", item.get("role")) for item in last["input"]] == [
            "user", "function_call", "function_call_output",
        ]  # fmt: skip
        assert json.loads(last["input"][1]["arguments"]) == {"at": "x"}


def test_a_merged_answer_has_the_id_of_the_last_response() -> None:
    """An answer merged from two whole ones has the id under which its end is kept."""

    def part(name: str, text: str, status: str) -> bytes:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": status, "content": content}
        why = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
        return whole({**RESPONSE, "id": f"resp_{name}", "status": status, "output": [item], "usage": None, **why})

    with scripted(part("1", "one two three", "incomplete"), part("2", "two three four", "completed")) as front:
        gpt = front.gpt()
        got = gpt.responses.create(model="small", input="count", max_output_tokens=64_000)
        assert (got.id, got.output_text) == ("resp_2", "one two three four")
        reference: Any = [{"type": "item_reference", "id": "msg_1"}]
        gpt.responses.with_raw_response.create(model="small", input=reference)
        assert text_of(front.bodies()[-1]["input"]) == "one two three four"
