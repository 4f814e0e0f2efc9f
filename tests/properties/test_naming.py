"""Fuzzing the naming: whatever comes, a failure comes out; never an exception, never a secret, never a long wait."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rung.core.classify.classifier import RULES, classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Evidence, Failure, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

BAIT = st.sampled_from(
    ["{", "[", '"message": "', "'code': '", "\\", '\\"', "429", "Error:", "\n", "\x00", "\ud800", "'", "retry after ", "Traceback",
     "<returncode>1</returncode>", "limit ", "requested 9", "exit=1", "余额不足", "caused by", *(rule.example.text for rule in RULES)]
)  # fmt: skip
TEXTS = st.text() | st.lists(BAIT | st.text(max_size=5), max_size=30).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "status", "type", "result", "is_error", "detail"]), inner
        )
    ),
    max_leaves=12,
)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "form": st.sampled_from(["http", "exception", "tool", "output"]) | JSON,
        "provider": TEXTS | JSON,
        "status": st.integers() | JSON,
        "headers": st.dictionaries(st.sampled_from(["Retry-After", "date", "X-RateLimit-Remaining", "x"]), TEXTS)
        | JSON,
        "body": TEXTS | st.binary() | JSON | JSON.map(json.dumps) | JSON.map(repr),
        "exception_type": TEXTS | JSON,
        "message": TEXTS | JSON,
        "exit_code": st.integers() | JSON,
    },
)


def chained(errors: list[Exception]) -> Exception:
    """Each the cause of the one before; the last one of the first."""
    for error, cause in zip(errors, [*errors[1:], errors[0]], strict=True):
        error.__cause__ = cause
    return errors[0]


OBJECTS = (
    st.binary()
    | TEXTS
    | JSON
    | ROWS
    | st.builds(Evidence, text=TEXTS, phase=st.sampled_from(list(Phase)), code=TEXTS, status=st.none() | st.integers())
    | st.lists(TEXTS.map(Exception) | TEXTS.map(OSError), min_size=1, max_size=5).map(chained)
    | st.lists(TEXTS.map(ValueError), min_size=1, max_size=3).map(lambda errors: ExceptionGroup("all", errors))
)


@given(OBJECTS)
def test_always_a_failure(thing: Any) -> None:
    """Bytes, texts, JSON, rows, evidence, chains and groups of exceptions: each has a name, and twice the same."""
    failure = classify(thing)
    assert isinstance(failure, Failure)
    assert failure == classify(thing)
    assert failure.retry_after is None or failure.retry_after >= 0
    assert len(failure.fingerprint) == 12


class Deep(Exception):
    """One with ten thousand causes."""


def ten_thousand_causes() -> Exception:
    error = Exception("root")
    for number in range(10_000):
        outer = Deep(str(number))
        outer.__cause__ = error
        error = outer
    return error


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"error": value}
    return value


HOSTILE: dict[str, Any] = {
    "100 MB of bytes": {"status": 500, "body": b"x" * 100_000_000},
    "100 MB of text": {"status": 500, "body": "é" * 100_000_000},
    "an exception of 100 MB": Exception("y" * 100_000_000),
    "nested JSON": '{"error":' * 20_000,
    "nested lists": "[" * 60_000,
    "a nested mapping": {"body": nested(500)},
    "a wide mapping": {"body": {str(number): "message" * 10 for number in range(200_000)}},
    "quotes": "\"'" * 30_000,
    "escapes": '{"message":"' + "\\" * 60_000,
    "escaped quotes": '{"message":"' + '\\"' * 30_000,
    "fields": '"message":"' * 6_000,
    "fields in fields": "'message': \"{'message': \\\"" * 3_000,
    "regex bait": "a" * 60_000 + "!",
    "spaces": " " * 60_000 + "429",
    "lines": "\n" * 60_000,
    "errors": "Error: " * 9_000,
    "classes": "AError" * 10_000 + ":",
    "numbers": "429 " * 15_000,
    "digits": "4" * 60_000,
    "waits": "retry after " * 5_000 + "1" * 5_000,
    "limits": "limit 1 requested " * 3_000,
    "paths": "a:1:" * 15_000,
    "NULs": "\x00" * 60_000,
    "lone surrogates": "\ud800" * 60_000,
    "signs": "余" * 60_000,
    "every rule's words": " ".join(rule.example.text for rule in RULES) * 5,
    "ten thousand causes": ten_thousand_causes(),
    "headers": {"status": 429, "headers": {f"x-ratelimit-remaining-{n}": "0" for n in range(20_000)}},
}


@pytest.mark.parametrize("phase", ["exception", "tool", "output"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_costs_nothing(name: str, phase: str) -> None:
    """Whatever its size and shape, it is named in the time of sorting 60,000 numbers by their text, or 3 times that."""
    thing = HOSTILE[name]
    row = {**thing, "form": phase} if isinstance(thing, dict) else {"form": phase, "body": thing}
    given = thing if isinstance(thing, Exception) else row
    best, sorting = 1.0, 1.0
    for _ in range(20):  # on a busy machine one measurement says little
        sorting = min(sorting, cpu_seconds(lambda: sorted(range(60_000), key=str)))
        best = min(best, cpu_seconds(lambda: classify(given)))
        if best < 3 * sorting:
            break
    assert best < 3 * sorting


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a piece of work."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


@settings(max_examples=50)
@given(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=24, max_size=40),
    TEXTS,
    st.sampled_from(["sk-ant-", "ghp_", "Bearer "]),
)
def test_no_secret_gets_through(random: str, around: str, head: str) -> None:
    """A key in an error is in nothing that is kept of it."""
    assume(random not in around)
    failure = classify(evidence_of(f"{around} {head}{random}1 {around}"))
    assert random not in repr(failure)
