"""Exceptions of Rung: one tree, pickling, and messages."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from http import HTTPStatus
from typing import Any

import pytest

from rung.core.domain.errors import (
    AttemptError,
    AttemptTimeout,
    CircuitOpenError,
    ConfigError,
    RungError,
    is_number,
    is_whole,
)
from rung.core.domain.failures import NO_HEADERS, Evidence, Kind, Phase
from rung.core.domain.request import NO_PARAMS


def test_one_tree() -> None:
    """All our exceptions can be caught as RungError, and two of them also as what Python would have raised."""
    assert all(issubclass(error, RungError) for error in (ConfigError, AttemptError, CircuitOpenError, AttemptTimeout))
    assert issubclass(ConfigError, ValueError)
    assert issubclass(AttemptTimeout, TimeoutError)
    assert not issubclass(CircuitOpenError, OSError)


def test_a_config_error_says_it_all() -> None:
    """A ConfigError names the key, the value and what is allowed, also when seen from further out."""
    error = ConfigError("tries", -1, "0 or more")
    assert (error.key, error.value, error.allowed) == ("tries", -1, "0 or more")
    assert str(error) == "tries: -1 is invalid; must be 0 or more"
    assert str(error.with_prefix("rungs[2]")) == "rungs[2].tries: -1 is invalid; must be 0 or more"


def test_an_attempt_says_what_it_knows() -> None:
    """The facts an attempt gives become evidence; lists become tuples, names become kinds, None is left out."""
    error = AttemptError(
        "two are missing", finding="partial_output", missing=["tests", "docs"], phase="result", status=None, repeats=2
    )
    assert str(error) == "two are missing"
    assert error.evidence == Evidence(
        text="two are missing",
        finding=Kind.PARTIAL_OUTPUT,
        missing=("tests", "docs"),
        phase=Phase.RESULT,
        repeats=2,
    )
    assert AttemptError().evidence == Evidence()
    assert AttemptError("x", status=HTTPStatus.OK, retry_after=0).evidence.status == 200


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("finding", "bad mood"),
        ("finding", 3),
        ("phase", "later"),
        ("status", "503"),
        ("errno", "x"),
        ("exit_code", 1.0),
        ("signal", "KILL"),
        ("code", 7),
        ("output", b"x"),
        ("stack", ["x"]),
        ("missing", "tests"),
        ("missing", [1]),
        ("exceptions", {"ValueError"}),
        ("repeats", -1),
        ("repeats", "3"),
        ("repeats", True),
        ("retry_after", "30"),
        ("retry_after", -1),
        ("retry_after", math.nan),
        ("retry_after", math.inf),
    ],
)
def test_what_an_attempt_cannot_say(key: str, value: Any) -> None:
    """A fact of the wrong type is refused where it is said, before classify and decide stumble over it."""
    with pytest.raises(ConfigError) as raised:
        AttemptError("x", **{key: value})
    assert (raised.value.key, raised.value.value) == (key, value)


def test_a_text_is_a_text() -> None:
    """The text of an attempt's error must be one."""
    with pytest.raises(ConfigError, match="text"):
        AttemptError(5)  # type: ignore[arg-type]  # that is the point


def test_facts_nobody_knows() -> None:
    """A fact that evidence does not have is a mistake of the caller's."""
    with pytest.raises(TypeError, match="colour"):
        AttemptError("x", colour="blue")


def test_refused_says_for_how_long() -> None:
    """A refusal names its circuit and the seconds it stays open."""
    error = CircuitOpenError("anthropic", 12.34)
    assert (error.key, error.retry_after) == ("anthropic", 12.34)
    assert str(error).startswith("circuit 'anthropic' is open for another 12.3 s, because too many of its calls failed")


def test_time_up_says_after_how_long() -> None:
    """An ended attempt says after how many seconds."""
    error = AttemptTimeout(1.5)
    assert error.seconds == 1.5
    assert str(error) == "the attempt timed out after 1.5 s"


@pytest.mark.parametrize("value", [0, 1, 0.5, sys.float_info.max, 10**300])
def test_numbers(value: float) -> None:
    """A finite number is one, unless more is asked for."""
    assert is_number(value)
    assert is_number(value, value)
    assert not is_number(value, math.inf)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf, True, "1", None, 10**400, [1], 1j])
def test_what_is_no_number(value: Any) -> None:
    """What is endless, negative, a truth value or no number at all is none."""
    assert not is_number(value)


def test_whole_numbers() -> None:
    """A whole number is an integer, no truth value, and at least as large as asked for."""
    assert is_whole(0)
    assert is_whole(3, 3)
    assert not any(is_whole(value, 1) for value in (0, -1, 1.0, True, "1", None, math.nan))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize(
    "error",
    [
        RungError("a", 1),
        ConfigError("tries", -1, "0 or more"),
        AttemptError("two are missing", missing=["a", "b"]),
        CircuitOpenError("api", 1.5),
        AttemptTimeout(3.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_they_can_be_sent_and_copied(error: RungError, again: Any) -> None:
    """Text, arguments, facts and notes of each come through a copy and a pickle; then it can be raised again."""
    error.__notes__ = ["seen on the way"]
    other = again(error)
    assert type(other) is type(error)
    assert (str(other), other.args, other.__dict__) == (str(error), error.args, error.__dict__)
    assert other.__notes__ == ["seen on the way"]
    with pytest.raises(type(error)):
        raise other


@pytest.mark.parametrize("default", [NO_HEADERS, NO_PARAMS])
def test_shared_defaults_stay_empty(default: Any) -> None:
    """Nobody can put into one record's empty mapping what all others would then have."""
    for name, arguments in (("update", ({},)), ("setdefault", ("a", 1)), ("__setitem__", ("a", 1)), ("__ior__", ({},))):
        with pytest.raises(TypeError, match="read-only"):
            getattr(default, name)(*arguments)
    assert default == {} == pickle.loads(pickle.dumps(default))
