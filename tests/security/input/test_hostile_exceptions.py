"""Exceptions of other people's packages, as odd as Python allows: a recovery ends with an outcome all the same."""

from __future__ import annotations

import asyncio
import copy
import pickle
import traceback
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

import rung
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
CALL_ONCE = rung.policy("task", attempts=1)
RETRIED = rung.policy("call", backoff={"base": 0}, seconds=None)


def refuse(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("do not touch")


class _HostileHash(type):
    __hash__ = refuse


class _HostileEq(type):
    __hash__ = type.__hash__
    __eq__ = refuse


class _HostileName(type):
    def __getattribute__(cls, name: str) -> NoReturn:
        refuse()


class _HostileText(str):
    __slots__ = ()
    __str__ = __len__ = __contains__ = __hash__ = __eq__ = refuse


def _hostile(name: str, base: type[Exception] = Exception, meta: type = type, **members: Any) -> type[Exception]:
    return meta(name, (base,), members)  # type: ignore[no-any-return]


HOSTILE = {
    "module is None": _hostile("E", __module__=None),
    "module is a number": _hostile("E", __module__=5),
    "class": _hostile("E", __class__=property(refuse)),
    "class lies": _hostile("E", __class__=property(lambda _: int)),
    "dict": _hostile("E", __dict__=property(refuse)),
    "dict is a number": _hostile("E", __dict__=property(lambda _: 5)),
    "cause": _hostile("E", __cause__=property(refuse)),
    "cause is a number": _hostile("E", __cause__=property(lambda _: 5)),
    "context": _hostile("E", __context__=property(refuse)),
    "suppress": _hostile("E", __suppress_context__=property(refuse)),
    "args": _hostile("E", args=property(refuse)),
    "args is a number": _hostile("E", args=property(lambda _: 5)),
    "getattribute": _hostile("E", __getattribute__=refuse),
    "getattr": _hostile("E", __getattr__=refuse),
    "setattr": _hostile("E", __setattr__=refuse),
    "str": _hostile("E", __str__=refuse, __repr__=refuse),
    "str returns a number": _hostile("E", __str__=lambda _: 5),
    "hash": _hostile("E", __hash__=refuse),
    "eq": _hostile("E", __eq__=refuse, __hash__=refuse),
    "bool": _hostile("E", __bool__=refuse),
    "len": _hostile("E", __len__=refuse),
    "metaclass hash": _hostile("E", meta=_HostileHash),
    "metaclass eq": _hostile("E", meta=_HostileEq),
    "metaclass names": _hostile("E", meta=_HostileName),
    "status": _hostile("E", status_code=property(refuse), response=property(refuse), headers=property(refuse)),
    "text": _hostile("E", body=_HostileText("x"), code=_HostileText("x"), message=_HostileText("x")),
    "errno": _hostile("E", OSError, errno=property(refuse), filename=property(refuse)),
    "filename": _hostile("E", OSError, filename=property(refuse)),
    "add_note": _hostile("E", add_note=refuse, __notes__=property(refuse)),
    "traceback": _hostile("E", with_traceback=refuse, __traceback__=property(refuse)),
    "timeout": _hostile("E", TimeoutError, __getattribute__=refuse),
    "group": _hostile("E", ExceptionGroup, exceptions=property(refuse)),
    "evidence": _hostile("E", __rung_evidence__=property(refuse), evidence=property(refuse)),
    "attempt error": _hostile("E", rung.AttemptError, __getattribute__=refuse),
}


def _made(name: str) -> Exception:
    kind = HOSTILE[name]
    if name == "group":
        return kind("g", [ValueError()])
    if name == "text":
        return kind(_HostileText("x"))
    return kind("boom")


def without_raising(call: Callable[[], T]) -> T:
    """Return what the call returns. What it raises is named by type alone: pytest cannot show such exceptions."""
    raised = ""
    try:
        return call()
    except BaseException as error:  # any
        frames = traceback.extract_tb(BaseException.__dict__["__traceback__"].__get__(error))
        raised = f"{type.__repr__(type(error))} in {frames[-1].filename}:{frames[-1].lineno}"
    pytest.fail(f"raised {raised}")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("has_cause", [False, True])
def test_recover_never_raises(name: str, has_cause: bool) -> None:  # a parameter of the test
    """Whatever an attempt raises, on its own or as a cause, `recover` and `recover_sync` return an outcome."""

    def attempt(_: rung.Request) -> None:
        if has_cause:
            raise ValueError("outer") from _made(name)
        raise _made(name)

    outcome = without_raising(lambda: rung.recover_sync(attempt, "do it", policy=CALL_ONCE))
    assert outcome.status in (Status.PARTIAL, Status.FAILED, Status.BLOCKED)
    assert outcome.to_dict()["attempts"] == 1
    later = without_raising(lambda: asyncio.run(rung.recover(attempt, "do it", policy=CALL_ONCE)))
    assert later.status is outcome.status


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("policy", [CALL_ONCE, RETRIED], ids=["once", "retried"])
def test_a_guarded_call_raises_the_error_itself(name: str, policy: rung.Policy) -> None:
    """A guarded function raises what its attempt raised, not an error about reading it; also after retries."""
    error = _made(name)
    guard = rung.guarded(policy, key=f"hostile {name} {policy.ladder.name}", retry_budget=None)

    @guard
    def call() -> None:
        raise error

    @guard
    async def acall() -> None:
        raise error

    async def seen() -> bool:  # caught inside the task: asyncio itself does not survive such an error
        try:
            await acall()
        except BaseException as raised:  # compared by identity
            return raised is error
        return False

    is_same = _raised(call) is error
    assert is_same
    assert asyncio.run(seen())


def test_an_interrupt_of_a_retry_is_raised_itself() -> None:
    """An interrupt whose class refuses the outcome still stops the first retry of a guarded call."""
    kind = type("Stop", (KeyboardInterrupt,), {"__dict__": property(refuse)})
    errors = [ConnectionError("reset"), kind()]

    @rung.guarded(RETRIED, key="hostile interrupt", retry_budget=None)
    def call() -> None:
        raise errors.pop(0)

    assert type(_raised(call)) is kind
    assert not errors


def _raised(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except BaseException as seen:  # compared by identity
        return seen
    return None


@pytest.mark.parametrize("name", HOSTILE)
def test_an_error_of_a_listener_is_only_noted(name: str) -> None:
    """A listener that raises such an exception does not end the recovery."""

    def listen(*_: object) -> None:
        raise _made(name)

    with pytest.warns(RuntimeWarning, match="listener"):
        assert without_raising(
            lambda: rung.recover_sync(lambda _: "good", "do it", policy=CALL_ONCE, listeners=[listen])
        ).ok


@pytest.mark.parametrize("name", HOSTILE)
def test_classify_never_raises(name: str) -> None:
    """`classify` names a kind for such an exception, and for an object that is just as hostile."""
    assert without_raising(lambda: rung.classify(_made(name))).kind in rung.Kind
    hostile = type("Thing", (), {"__class__": property(refuse), "__str__": refuse, "__getattribute__": refuse})
    assert without_raising(lambda: rung.classify(hostile())).kind is rung.Kind.UNKNOWN


@pytest.mark.parametrize("policy", [rung.policy(name) for name in ("task", "call", "pipeline", "model", "crew")])
def test_policies_can_be_copied(policy: rung.Policy) -> None:
    """A policy and its ladder can be pickled, for a process pool, and copied deeply; the copies are equal."""
    for value in (policy, policy.ladder, policy.replace(prompts={"nudge.general": "x"})):
        for number in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(value, number)) == value  # our own bytes
        assert copy.deepcopy(value) == value
        assert copy.copy(value) == value
