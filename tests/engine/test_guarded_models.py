"""A policy with models needs a function that can receive a changed request: said at decoration."""

from __future__ import annotations

from typing import Any

import pytest

import rung
from rung.core.domain.errors import ConfigError

MODELS = rung.policy("call", models=["small", "large"])
AGENTS = rung.policy("call", agents=["a", "b"])


def nothing() -> str:
    return ""


def keywords(*, request: Any = None) -> str:
    return str(request)


def text(prompt: str) -> str:
    return prompt


async def later(number: int) -> int:
    return number


def items(prompt: str) -> Any:
    yield prompt


@pytest.mark.parametrize("function", [nothing, keywords, text, later, items])
@pytest.mark.parametrize(("policy", "key"), [(MODELS, "policy.models"), (AGENTS, "policy.agents")])
def test_a_function_without_a_request(function: Any, policy: rung.Policy, key: str) -> None:
    """Models and agents that no call can use are an error when the function is decorated, which names what is allowed."""
    with pytest.raises(ConfigError, match=r"first parameter is a rung\.Request") as raised:
        rung.guarded(policy)(function)
    assert key in str(raised.value)
    rung.guarded("call")(function)


def annotated(request: rung.Request) -> str:
    return request.model


def plain(request) -> str:  # type: ignore[no-untyped-def]
    return str(request.model)


def anything(*args: Any) -> str:
    return str(args[0].model)


def aliased(request: object) -> str:
    return str(request)


@pytest.mark.parametrize("function", [annotated, plain, anything, aliased, len])
def test_a_function_that_may_take_a_request(function: Any) -> None:
    """What is not certain is no error."""
    rung.guarded(MODELS)(function)
