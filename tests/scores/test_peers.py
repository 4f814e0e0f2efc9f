"""`rung.is_retryable` inside the retry libraries and frameworks people already use: the real ones."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
import stamina
import tenacity
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

import rung
from rung.testing import HttpError


class Flaky:
    """Fails so often with this error, then works."""

    def __init__(self, error: Exception, times: int = 1) -> None:
        self.error = error
        self.times = times
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return "done"


BLIP, REFUSED = HttpError(529, "Overloaded"), HttpError(401, "invalid x-api-key")


def test_tenacity() -> None:
    """Tenacity retries a blip and not a refused key, when it asks us."""
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(rung.is_retryable), stop=tenacity.stop_after_attempt(3), reraise=True
    )
    assert retrying(Flaky(BLIP)) == "done"
    refused = Flaky(REFUSED)
    with pytest.raises(HttpError):
        retrying(refused)
    assert refused.calls == 1


def test_stamina() -> None:
    """So does stamina."""
    with stamina.set_testing(True, attempts=3):
        caller = stamina.RetryingCaller().on(rung.is_retryable)
        assert caller(Flaky(BLIP)) == "done"
        refused = Flaky(REFUSED)
        with pytest.raises(HttpError):
            caller(refused)
    assert refused.calls == 1


class WorkState(TypedDict):
    answer: str


def graph(work: Flaky) -> Any:
    builder = StateGraph(WorkState)
    policy = RetryPolicy(retry_on=rung.is_retryable, initial_interval=0.001, jitter=False)
    builder.add_node("work", lambda state: {"answer": work()}, retry_policy=policy)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile()


def test_langgraph() -> None:
    """So does a LangGraph node."""
    assert graph(Flaky(BLIP)).invoke({"answer": ""}) == {"answer": "done"}
    refused = Flaky(REFUSED)
    with pytest.raises(HttpError):
        graph(refused).invoke({"answer": ""})
    assert refused.calls == 1


def test_langchain() -> None:
    """So does a LangChain agent's model call."""

    class WorkingChatModel(GenericFakeChatModel):
        work: Any

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            self.work()
            return super()._generate(*args, **kwargs)

    def agent(work: Flaky) -> Any:
        retry = ModelRetryMiddleware(retry_on=rung.is_retryable, initial_delay=0.001, jitter=False, on_failure="error")
        model = WorkingChatModel(messages=iter([AIMessage("hello")]), work=work)
        return create_agent(model=model, tools=[], middleware=[retry])

    question = {"messages": [("user", "hi")]}
    assert agent(Flaky(BLIP)).invoke(question)["messages"][-1].content == "hello"
    refused = Flaky(REFUSED)
    with pytest.raises(HttpError):
        agent(refused).invoke(question)
    assert refused.calls == 1
