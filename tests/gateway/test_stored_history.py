"""History and files that lie at a provider: a call that names them stays there or is rejected, and never loses them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai
import pytest

import rung
from rung.gateway.references import ReferenceTable
from rung.testing.provider import Lab
from tests.gateway.behind import RESPONSES_TOOL, WHOLE, Behind
from tests.gateway.test_other_provider import OTHERS, beside

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAMED = {"x-rung-session": "one"}
UNKNOWN: Mapping[str, Any] = {"previous_response_id": "resp_unknown"}
AT_PROVIDER = pytest.mark.parametrize(
    "reference",
    [
        UNKNOWN,
        {"conversation": "conv_1"},
        {"input": [{"type": "item_reference", "id": "msg_unknown"}, {"role": "user", "content": "go on"}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
    ],
    ids=["previous_response", "conversation", "item", "file"],
)
COUNT = "count to 40 as apple"
OTHER = pytest.mark.parametrize("other", ["chat", "messages", "gemini"])
EACH_WAY = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "key-of-the-other-provider")


def go_on(behind: Behind, reference: Mapping[str, Any], **headers: str) -> Any:
    asked: Any = {"model": "small", "input": "go on", **reference}
    return behind.gpt().responses.create(**asked, extra_headers=headers)


@AT_PROVIDER
@OTHER
def test_no_upstream_has_the_history(other: str, reference: Mapping[str, Any]) -> None:
    """Without an upstream of its wire, a call that names history or files elsewhere is rejected with the reason."""
    with beside("responses", other, alone=True) as (behind, lab):
        with pytest.raises(openai.NotFoundError, match="history or files that only its own provider has") as error:
            go_on(behind, reference)
        assert "responses" in str(error.value)
        assert lab.attempts == 0


@AT_PROVIDER
def test_an_upstream_of_the_same_api_has_the_history(reference: Mapping[str, Any]) -> None:
    """If the first upstream of the client's API has only Chat Completions, the one with Responses gets such a call."""
    with Lab() as chat_only, Lab() as whole:
        upstreams = {
            "first": {**OTHERS["chat"], "url": chat_only.url},
            "second": {**OTHERS["responses"], "url": whole.url},
        }
        with Behind(apis=(), upstreams=upstreams) as behind:
            assert go_on(behind, {}).output_text
            assert (chat_only.attempts, whole.attempts) == (1, 0)
            assert go_on(behind, reference).output_text
            assert (chat_only.attempts, whole.attempts) == (1, 1)
            assert all(whole.calls[0].json[name] == value for name, value in reference.items())


@AT_PROVIDER
def test_another_upstream_of_the_same_api_is_no_fallback(reference: Mapping[str, Any]) -> None:
    """If the own provider fails, an upstream that has only Chat Completions does not answer without the history."""
    with Lab([{"fault": "overloaded"}]) as own, Lab() as chat_only:
        upstreams = {"own": {**OTHERS["responses"], "url": own.url}, "second": {**OTHERS["chat"], "url": chat_only.url}}
        with Behind(apis=(), upstreams=upstreams) as behind:
            with pytest.raises(openai.InternalServerError):
                go_on(behind, reference)
            assert chat_only.attempts == 0
            assert go_on(behind, {}).output_text


def test_a_session_that_moved_asks_its_own_provider() -> None:
    """A session that another provider serves for a while asks its own one about a response that only that one has."""
    away = [{"fault": "model_gone", "request": 1}]
    with beside("responses", "messages", away) as (behind, lab):
        assert go_on(behind, {"input": COUNT}, **NAMED).output_text == WHOLE
        assert lab.attempts == 1
        assert go_on(behind, UNKNOWN, **NAMED).output_text
        assert lab.attempts == 1
        assert behind.lab.calls[-1].json["previous_response_id"] == "resp_unknown"


def turn(behind: Behind, text: Any, before: str | None = None, *, stream: bool, **more: Any) -> Any:
    """Have one turn of a conversation; `before`: the response that it follows."""
    asked: Any = {"model": "small", "input": text, "previous_response_id": before, **more}
    if not stream:
        return behind.gpt().responses.create(**asked)
    with behind.gpt().responses.stream(**asked) as events:
        return events.get_final_response()


@EACH_WAY
@OTHER
def test_a_translated_answer_is_remembered(other: str, stream: bool) -> None:
    """A call that follows a translated answer by its id has the whole conversation, turn after turn."""
    with beside("responses", other, alone=True) as (behind, lab):
        first = turn(behind, COUNT, stream=stream, instructions="be kind")
        second = turn(behind, "and then?", first.id, stream=stream)
        turn(behind, "at last?", second.id, stream=stream)
        assert len({first.id, second.id}) == 2
        sent = str(lab.calls[-1].json)
        places = [sent.index(text) for text in (COUNT, "apple40", "and then?", "at last?")]
        assert places == sorted(places)
        assert sent.count(COUNT) == 1
        assert "be kind" not in sent


@EACH_WAY
def test_tool_results_follow_a_translated_call(stream: bool) -> None:
    """The result of a tool that a translated answer called is sent with its call."""
    with beside("responses", "messages", alone=True, answers={"calls": 1}) as (behind, lab):
        first = turn(behind, COUNT, stream=stream, tools=[RESPONSES_TOOL])
        (call,) = [item for item in first.output if item.type == "function_call"]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "seen"}
        turn(behind, [result], first.id, stream=stream, tools=[RESPONSES_TOOL])
        asked, called, answered = lab.calls[-1].json["messages"]
        assert asked["role"] == "user"
        assert called["content"][0]["type"] == "tool_use"
        assert answered["content"][0]["tool_use_id"] == called["content"][0]["id"]


@EACH_WAY
def test_the_own_provider_follows_a_translated_answer(stream: bool) -> None:
    """After an outage the own provider gets the conversation that the other one had, in items and without its ids."""
    away = [{"fault": "model_gone", "request": 1}]
    with beside("responses", "messages", away, sticky_seconds=0.0) as (behind, lab):
        first = turn(behind, COUNT, stream=stream)
        assert lab.attempts == 1
        turn(behind, "and then?", first.id, stream=stream)
        assert lab.attempts == 1
        sent = behind.lab.calls[-1].json
        assert sent["previous_response_id"] is None
        assert [item["role"] for item in sent["input"]] == ["user", "assistant", "user"]
        assert not any("id" in item for item in sent["input"])
        assert sent["input"][1]["content"][0]["text"] == WHOLE


def test_an_answer_that_another_provider_ended_is_remembered() -> None:
    """If the own provider breaks off and another one ends the answer, the next call has all of it."""
    cut = [{"fault": "cut", "after": 17}]
    with beside("responses", "messages", cut, policy={"retries": 1}) as (behind, lab):
        first = turn(behind, COUNT, stream=True, max_output_tokens=4_000)
        assert first.output_text == WHOLE
        assert lab.attempts >= 1
        behind.lab.use([{"fault": "overloaded"}])
        turn(behind, "and then?", first.id, stream=False)
        said = lab.calls[-1].json["messages"]
        assert [each["role"] for each in said] == ["user", "assistant", "user"]
        assert WHOLE in str(said[1])


def test_a_translated_answer_is_known_after_a_restart(tmp_path: Path) -> None:
    """With a journal, which holds no text of it, a translated answer is known to the next gateway, to its caller only."""
    path = tmp_path / "journal.db"
    with beside("responses", "messages", alone=True, journal=rung.journal(path)) as (behind, _):
        first = turn(behind, COUNT, stream=False)
    assert not any(b"apple39" in file.read_bytes() for file in tmp_path.iterdir())
    with beside("responses", "messages", alone=True, journal=rung.journal(path)) as (behind, lab):
        turn(behind, "and then?", first.id, stream=False)
        assert WHOLE in str(lab.calls[-1].json["messages"])
        other = behind.gpt(default_headers={"x-auth-token": "another"})
        with pytest.raises(openai.NotFoundError):
            other.responses.create(model="small", input="and then?", previous_response_id=first.id)


def test_an_answer_that_is_not_to_be_stored_is_not_remembered() -> None:
    """With `store: false` the gateway keeps nothing of a translated answer."""
    with beside("responses", "messages", alone=True) as (behind, _):
        first = turn(behind, COUNT, stream=False, store=False)
        assert len(behind.gateway.references) == 0
        with pytest.raises(openai.NotFoundError):
            turn(behind, "and then?", first.id, stream=False)


def test_references_have_a_size_limit(tmp_path: Path) -> None:
    """The oldest conversations are forgotten beyond a size, in the journal too, and one that is too large at once."""

    async def record(table: ReferenceTable) -> None:
        for name in ("a", "b", "c", "d", "e"):
            await table.record("me", {name: {"input": [{"role": "user", "content": "x" * 200}]}})
        await table.record("me", {"large": "x" * 400})

    with rung.journal(tmp_path / "journal.db") as journal:
        table = ReferenceTable(journal, print, lambda: 100.0, max_bytes=1_000)
        asyncio.run(record(table))
        assert len(table) == 4
        after = ReferenceTable(journal, print, lambda: 100.0, max_bytes=10_000)
        asyncio.run(after.load())
        assert len(after) == 4
