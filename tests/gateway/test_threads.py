"""Threads of Anthropic's API, whose earlier turns are at the provider: other providers get the whole conversation."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from tests.gateway.behind import ASK, Behind
from tests.gateway.scripted import completion, message, refused, whole
from tests.gateway.test_other_provider import OTHERS
from tests.security.upstream.raw_upstream import RawUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "key-of-the-other-provider")


@anthropic.beta_tool
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: Its name.
    """
    return f"sunny in {city}"


@contextmanager
def providers(*answers: bytes, own: tuple[bytes, ...] = ()) -> Iterator[tuple[Behind, RawUpstream]]:
    """Run a gateway before a provider of Chat Completions with these answers, and the client's own one if it has any."""
    left, own_left = list(answers), list(own)
    with ExitStack() as stack:
        other = stack.enter_context(RawUpstream(lambda _: left.pop(0), close=True))
        settings: dict[str, Any] = {"other": {**OTHERS["chat"], "url": other.url, "key_env": "OTHER_KEY"}}
        models, table = ["other/large"], {}
        if own:
            first = stack.enter_context(
                RawUpstream(lambda _: own_left.pop(0) if len(own_left) > 1 else own_left[0], close=True)
            )
            models, table = ["small", *models], {"anthropic": first.url}
        behind = Behind(apis=(), policy={"models": models, "retries": 1}, upstreams=settings, **table)
        yield stack.enter_context(behind), other


def run(behind: Behind) -> str:
    """Run an agent with the SDK, which sends its turns as a thread."""
    asked: Any = {"model": "small", "max_tokens": 500, "messages": list(ASK), "tools": [weather]}
    answer = behind.claude().beta.messages.tool_runner(**asked).until_done()
    return "".join(block.text for block in answer.content if block.type == "text")


def sent(upstream: RawUpstream) -> list[dict[str, Any]]:
    """The messages of the last request."""
    body = json.loads(upstream.requests[-1].partition(b"\r\n\r\n")[2])
    return list(body["messages"])


def test_a_thread_of_a_translated_answer() -> None:
    """No provider has a thread that another one answered: the SDK is told so, and sends the whole conversation."""
    with providers(whole(completion(None, "tool_calls", tool_calls=[CALL])), whole(completion("done"))) as (
        behind,
        other,
    ):
        assert run(behind) == "done"
        assert [each["role"] for each in sent(other)] == ["user", "assistant", "tool"]
        assert sent(other)[-1]["content"] == "sunny in Rome"
        assert len(other.requests) == 2


def test_a_provider_that_dies_in_a_thread() -> None:
    """If the provider that has the thread is down, another one continues with the whole conversation."""
    dead = refused("529 Overloaded", {"type": "overloaded_error", "message": "Overloaded"})
    own = (whole(message(TOOL_USE, reason="tool_use")), dead)
    with providers(whole(completion("done")), own=own) as (behind, other):
        assert run(behind) == "done"
        assert [each["role"] for each in sent(other)] == ["user", "assistant", "tool"]


def test_a_thread_without_another_provider_keeps_its_error() -> None:
    """Where no other provider could help, the client gets its provider's error, and may wait for it."""
    dead = refused("529 Overloaded", {"type": "overloaded_error", "message": "Overloaded"})
    with RawUpstream(dead, close=True) as own, Behind(apis=(), anthropic=own.url, policy={"retries": 0}) as behind:
        thread: Any = {"type": "continue", "previous_message_id": "msg_1"}
        with pytest.raises(anthropic.APIStatusError) as error:
            behind.claude().beta.messages.create(
                model="small", max_tokens=500, messages=ASK, thread=thread, betas=["message-threads-2026-08-12"]
            )
        assert error.value.status_code == 529


def test_a_good_request_of_a_thread_is_not_touched() -> None:
    """The own provider gets the client's thread as it is."""
    own = (whole(message(TOOL_USE, reason="tool_use")), whole(message({"type": "text", "text": "done"})))
    with providers(own=own) as (behind, other):
        assert run(behind) == "done"
        assert other.requests == []
