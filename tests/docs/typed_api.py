"""What type checkers infer for the public functions. Checked by mypy and pyright; `test_types` also runs it."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import rung


def answer(request: rung.Request) -> int:
    return len(request.prompt)


async def aanswer(request: rung.Request) -> str:
    return request.prompt


async def recoveries(policy: rung.Policy) -> None:
    """The value of an outcome has the type that the attempt returns, awaited or not."""
    assert_type(await rung.recover(aanswer, "go"), rung.Outcome[str])
    assert_type((await rung.recover(answer, "go", policy=policy)).value, int | None)
    assert_type(rung.recover_sync(answer, rung.Request(prompt="go")).unwrap(), int)
    both = (rung.GatherJob(aanswer, "one"), rung.GatherJob(aanswer, rung.Request(prompt="two")))
    assert_type(await rung.gather(*both), list[rung.Outcome[str]])
    assert_type(rung.gather_sync(rung.GatherJob(answer, "one")), list[rung.Outcome[int]])


@rung.guarded
def plain(name: str, times: int = 1) -> str:
    return name * times


@rung.guarded("call", retry_budget=None)
async def coroutine(name: str) -> int:
    return len(name)


@rung.guarded()
def numbers(upto: int) -> Iterator[int]:
    yield from range(upto)


@rung.guarded(rung.policy("call", attempts=2), idempotent=True)
async def anumbers(upto: int) -> AsyncIterator[int]:
    for number in range(upto):
        yield number


class Client:
    """Methods of every kind."""

    @rung.guarded
    def method(self, name: str) -> int:
        return len(name)

    @classmethod
    @rung.guarded
    def of_class(cls) -> str:
        return cls.__name__

    @staticmethod
    @rung.guarded
    def static() -> float:
        return 1.5


async def guarded_functions(client: Client) -> None:
    """A guarded function keeps its parameters and its result, in every form of the decorator."""
    assert_type(plain("a", times=2), str)
    assert_type(await coroutine("a"), int)
    assert_type(numbers(2), Iterator[int])
    assert_type(anumbers(2), AsyncIterator[int])
    assert_type(client.method("a"), int)
    assert_type(Client.of_class(), str)
    assert_type(Client.static(), float)
    assert_type(rung.guarded(answer, breakers=None)(rung.Request(prompt="a")), int)


def mistakes() -> None:
    """Misspelt names and arguments, and values of the wrong type, are rejected."""
    rung.recover_sync(answer, "go", chek=print)  # type: ignore[call-arg]
    rung.recover_sync(answer, "go", check=5)  # type: ignore[arg-type]
    rung.policy("task", atempts=3)  # type: ignore[call-arg]
    rung.policy("task", attempts="three")  # type: ignore[arg-type]
    rung.policy("task").replace(patiense=3)  # type: ignore[call-arg]
    rung.Request(prompt="a").replace(modle="b")  # type: ignore[call-arg]
    plain(name=1)  # type: ignore[arg-type]
    rung.recoverr(answer, "go")  # type: ignore[attr-defined]


def record(outcome: rung.Outcome[str]) -> dict[str, Any]:
    """The contract is a table of JSON values."""
    return outcome.to_dict()
