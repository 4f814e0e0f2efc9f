"""Thinking is shown as it comes, is never left unsigned where it could be sent back, and alone is an answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.behind import ASK, WIRES, Behind
from tests.gateway.scripted import chunk, completion, message, scripted, stream, whole
from tests.security.upstream.raw_upstream import Front, RawUpstream
from tests.wires.strict import PATHS, streamed

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD: dict[str, Any] = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "small",
    "content": [],
    "stop_reason": None,
}
HEAD |= {"stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
RESPONSE: dict[str, Any] = {"object": "response", "created_at": 1, "model": "small", "parallel_tool_calls": True}
RESPONSE |= {"tool_choice": "auto", "tools": [], "output": [], "status": "in_progress"}


def body(wire: str, **more: Any) -> dict[str, Any]:
    told = {"input": ASK} if wire == "responses" else {"messages": ASK}
    return {"model": "small", "max_tokens": 4_000, "stream": True, **told, **more}


def thoughts(wire: str, text: str = "let me see", name: str = "1") -> list[dict[str, Any]]:
    """The beginning of an answer that thinks."""
    if wire == "chat":
        return [chunk(role="assistant"), chunk(reasoning_content=text)]
    if wire == "messages":
        begin = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}
        delta = {"type": "thinking_delta", "thinking": text}
        return [
            {"type": "message_start", "message": HEAD},
            begin,
            {"type": "content_block_delta", "index": 0, "delta": delta},
        ]
    item = {"id": f"rs_{name}", "type": "reasoning", "summary": []}
    place = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**RESPONSE, "id": f"resp_{name}"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", **place, "delta": text},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def rest(wire: str, text: str = "the answer", name: str = "1") -> list[dict[str, Any] | str]:
    """The end of an answer that has thought."""
    if wire == "chat":
        return [chunk(content=text), chunk("stop"), "[DONE]"]
    if wire == "messages":
        signed = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "real"}}
        block = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}
        said = {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}}
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
        stops = [{"type": "content_block_stop", "index": index} for index in (0, 1)]
        return [signed, stops[0], block, said, stops[1], end, {"type": "message_stop"}]
    summary = [{"type": "summary_text", "text": "let me see"}]
    thought = {"id": f"rs_{name}", "type": "reasoning", "summary": summary, "encrypted_content": "real"}
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    place = {"item_id": said["id"], "output_index": 1, "content_index": 0}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # type: ignore[dict-item]
    done = {**RESPONSE, "id": f"resp_{name}", "status": "completed", "output": [thought, said], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**said, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 1, "item": said},
        {"type": "response.completed", "response": done},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events, 4)]


@pytest.mark.parametrize("wire", WIRES)
def test_thinking_is_shown_as_it_comes(wire: str) -> None:
    """A client sees the first thought while the upstream still thinks."""
    seen = threading.Event()

    def think(_: bytes) -> Iterator[bytes]:
        whole_stream = stream(*thoughts(wire), *rest(wire))
        first = whole_stream.index(b"\n\n", whole_stream.index(b"let me see")) + 2
        yield whole_stream[:first]
        seen.wait(60)
        yield whole_stream[first:]

    with RawUpstream(think, close=True) as upstream, Front(anthropic=upstream.url, openai=upstream.url) as front:
        received = ""
        with front.http() as client, client.stream("POST", PATHS[wire], json=body(wire)) as answer:
            for text in answer.iter_text():
                received += text
                if "let me see" in received:
                    seen.set()
        assert seen.is_set()
        assert "the answer" in received
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_a_cut_in_the_thinking(wire: str) -> None:
    """Thinking that breaks off is asked for again, invisibly but for its beginning; it is marked, and not sent back."""
    again = stream(*thoughts(wire, name="2"), *rest(wire, name="2"))
    with scripted(stream(*thoughts(wire), cut=True), again) as front, front.http() as client:
        text = client.post(PATHS[wire], json=body(wire)).text
        if wire != "chat":
            assert text.count("rung_incomplete") >= 1
            assert text.count("real") >= 1
        assert streamed(wire, text).text == "the answer"
        first, second = front.bodies()
        assert first == second
        history: dict[str, Any] = {}
        if wire == "messages":
            broken: dict[str, Any] = {"type": "thinking", "thinking": "let me", "signature": "rung_incomplete"}
            said = [broken, {"type": "thinking", "thinking": "so", "signature": "real"}, {"type": "text", "text": "hi"}]
            history = {"messages": [*ASK, {"role": "assistant", "content": said}, *ASK]}
        if wire == "responses":
            broken = {"type": "reasoning", "summary": [], "encrypted_content": "rung_incomplete"}
            history = {"input": [*ASK, broken, {"type": "reasoning", "id": "rs_2", "summary": []}, *ASK]}
        if history:
            client.post(PATHS[wire], json=body(wire, **history))
            assert "rung_incomplete" not in str(front.bodies()[-1])
            assert ("real" if wire == "messages" else "rs_2") in str(front.bodies()[-1])


def test_reasoning_alone_is_an_answer() -> None:
    """An answer that has only thought is passed on after one request, streamed or not."""
    alone = {"type": "thinking", "thinking": "that is all", "signature": "real"}
    chat: Any = {"model": "small", "messages": ASK}
    with scripted(whole(completion(None, reasoning_content="that is all"))) as front:
        got: Any = front.gpt().chat.completions.create(**chat).choices[0].message
        assert (got.reasoning_content, front.asked) == ("that is all", 1)
    with scripted(stream(chunk(reasoning_content="that is all"), chunk("stop"), "[DONE]")) as front:
        with front.gpt().chat.completions.stream(**chat) as chunks:
            assert chunks.get_final_completion().choices[0].finish_reason == "stop"
        assert front.asked == 1
    with scripted(whole(message(alone))) as front:
        said: Any = front.claude().messages.create(**chat, max_tokens=500).content[0]
        assert (said.thinking, front.asked) == ("that is all", 1)


@pytest.mark.parametrize("wire", WIRES)
def test_a_lab_that_thinks(wire: str) -> None:
    """A thinking model that fails in its thinking and in its text gives one whole answer."""
    asked = body(wire, thinking={"type": "enabled", "budget_tokens": 2_000}, reasoning={"effort": "low"})
    for after in (3, 12):
        with Behind([{"fault": "cut", "after": after, "request": 1}]) as behind, behind.http() as client:
            got = streamed(wire, client.post(PATHS[wire], json=asked).text)
            assert got.text.endswith("apple40")
            assert got.text.startswith("apple1 ")
            assert behind.attempts == 2
