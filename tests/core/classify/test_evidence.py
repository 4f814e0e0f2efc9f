"""Extraction of evidence from any object, however badly it behaves."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from email.message import Message
from http import HTTPStatus
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast
from urllib.error import HTTPError

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.classify.error_readers import READERS
from rung.core.classify.evidence import (
    CHAIN_LIMIT,
    CODE_LIMIT,
    TEXT_LIMIT,
    carried_evidence,
    clip,
    evidence_of,
    without_secrets,
)
from rung.core.classify.retry_after import wait_in_headers
from rung.core.domain.errors import AttemptError, AttemptTimeout, CircuitOpenError
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.testing import HttpError


def raised(error: BaseException, cause: BaseException | None = None, context: BaseException | None = None) -> Any:
    error.__cause__, error.__context__ = cause, context
    error.__suppress_context__ = cause is not None
    return error


def having(**attributes: Any) -> Exception:
    """An exception with these attributes."""
    error = Exception("x")
    error.__dict__.update(attributes)
    return error


@given(st.text(), st.integers(0, 200))
def test_clip_keeps_the_limit(text: str, limit: int) -> None:
    """A clipped text is never longer than the limit, and one that fits is left as it is."""
    clipped = clip(text * 20, limit)
    assert len(clipped) <= limit
    if len(text) * 20 <= limit:
        assert clipped == text * 20


@given(st.text(min_size=100), st.integers(60, 99))
def test_clip_keeps_head_and_tail(text: str, limit: int) -> None:
    """Of a long text the first and the last characters stay, about as many of each, and it says that some are gone."""
    head, _, tail = clip(text, limit).rpartition(" characters left out …\n")
    head, _, number = head.rpartition("\n… ")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert head
    assert 0 <= len(tail) - len(head) <= 1
    assert 0 < int(number) <= len(text) - len(head) - len(tail)


def test_clip_without_room_for_words() -> None:
    """Where even the note would not fit, the head alone is kept."""
    assert clip("x" * 100, 20) == "x" * 20
    assert clip("x" * 100, 0) == ""
    assert all(clip("x" * 100, limit).startswith("x") for limit in range(1, 100))
    assert clip("x" * TEXT_LIMIT) == "x" * TEXT_LIMIT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "-1", "retry-after": "9"}, 9.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """The wait a server asks for is read from either header; what is no wait is passed over."""
    assert wait_in_headers(headers) == seconds


def test_evidence_is_its_own_evidence() -> None:
    """Evidence is returned as it is."""
    evidence = Evidence(text="x")
    assert evidence_of(evidence) is evidence


def test_text_and_bytes() -> None:
    """A text is evidence of itself, and bytes are read as text, whatever is in them."""
    assert evidence_of("Error: 429") == Evidence(text="Error: 429")
    assert evidence_of(b"Error: 429") == Evidence(text="Error: 429")
    assert evidence_of(bytearray(b"\xff\x00")).text == "\ufffd\x00"
    assert evidence_of(42).text == "42"
    assert evidence_of(None).text == "None"


def test_an_http_error() -> None:
    """Status, code, the wait, the classes and the harmless headers are read off an exception; a cookie is not."""
    evidence = evidence_of(
        HttpError(
            529, "Overloaded", {"Retry-After": "7", "X-Request-Id": "a", "Set-Cookie": "secret"}, "overloaded_error"
        )
    )
    assert evidence == Evidence(
        text="Overloaded",
        status=529,
        code="overloaded_error",
        headers={"retry-after": "7", "x-request-id": "a"},
        exceptions=("rung.testing.script.HttpError",),
        retry_after=7.0,
    )


def test_an_error_of_the_system() -> None:
    """The error number is read off an OSError, and every class but the dull ones is named, the nearest first."""
    evidence = evidence_of(ConnectionResetError(errno.ECONNRESET, "reset by peer"))
    assert evidence.errno == errno.ECONNRESET
    assert evidence.exceptions == ("ConnectionResetError", "ConnectionError", "OSError")
    assert evidence_of(Exception("x")).exceptions == ("Exception",)
    assert evidence_of(ValueError()).text == "ValueError"


def test_an_error_of_urllib() -> None:
    """The status and headers of a real HTTP error of the standard library are found."""
    headers = Message()
    headers["Retry-After"] = "3"
    with HTTPError("http://x", 503, "busy", headers, None) as error:
        evidence = evidence_of(error)
    assert (evidence.status, evidence.retry_after) == (503, 3.0)


@pytest.mark.parametrize("name", ["status_code", "status", "code"])
def test_where_the_status_may_be(name: str) -> None:
    """The status, from 100 to 599, may be the error's own or its response's, under any of three names."""
    assert [evidence_of(having(**{name: status})).status for status in (100, 599)] == [100, 599]
    assert evidence_of(having(**{name: 404})).status == 404
    assert evidence_of(having(response=SimpleNamespace(**{name: 404}))).status == 404


@pytest.mark.parametrize("value", [True, False, "503", b"503", 503.0, 99, 600, -1, None, 10**30, [503]])
def test_what_is_no_status(value: Any) -> None:
    """Only a whole number from 100 to 599 is a status."""
    assert evidence_of(having(status_code=value)).status is None


def test_a_status_of_an_enum() -> None:
    """A status that is a member of an enum becomes a plain number."""
    for evidence in (
        evidence_of(having(status=HTTPStatus.TOO_MANY_REQUESTS)),
        evidence_of({"status": HTTPStatus.TOO_MANY_REQUESTS}),
    ):
        assert evidence.status == 429
        assert type(evidence.status) is int


def test_headers_of_the_response_first() -> None:
    """The response's headers weigh more than the error's own; without any, the error's own are taken."""
    both = having(headers={"date": "own"}, response=SimpleNamespace(headers={"Date": "response"}))
    assert evidence_of(both).headers == {"date": "response"}
    own = having(headers={"date": "own"}, response=SimpleNamespace(headers={}))
    assert evidence_of(own).headers == {"date": "own"}


def test_facts_of_the_cause() -> None:
    """What the outer exception does not know is read off its cause or context; its text follows the outer one's."""
    inner = HttpError(429, "inner", {"retry-after": "5"}, "slow_down")
    for outer in (raised(RuntimeError("outer"), cause=inner), raised(RuntimeError("outer"), context=inner)):
        evidence = evidence_of(outer)
        assert evidence.exceptions == ("RuntimeError", "rung.testing.script.HttpError")
        assert (evidence.text, evidence.status, evidence.code, evidence.retry_after) == (
            "outer\ncaused by: inner",
            429,
            "slow_down",
            5,
        )
    hidden = raised(RuntimeError("outer"), context=inner)
    hidden.__suppress_context__ = True
    assert evidence_of(hidden).status is None


def test_the_first_to_know_is_believed() -> None:
    """A status or error number of the outer exception is not replaced by that of its cause."""
    assert evidence_of(raised(HttpError(401), cause=HttpError(500))).status == 401
    assert evidence_of(raised(OSError(2, "x"), cause=OSError(28, "y"))).errno == 2
    assert evidence_of(raised(ValueError("x"), cause=OSError(28, "y"))).errno == 28


def test_headers_are_not_lost_in_the_chain() -> None:
    """Headers of an exception without a status stay, although its cause has none."""
    outer = raised(having(headers={"retry-after": "8"}), cause=ValueError("x"))
    assert evidence_of(outer).retry_after == 8.0


def test_a_false_cause_is_a_cause() -> None:
    """A cause that is false (an empty group, say) is read all the same."""

    class Empty(HttpError):
        def __len__(self) -> int:
            return 0

    assert evidence_of(raised(RuntimeError("x"), cause=Empty(503))).status == 503


def test_carried_evidence_wins() -> None:
    """An attempt's own evidence is taken as it is, and what an inner recovery found weighs more than that."""
    own = AttemptError("x", finding="refusal", status=500)
    assert evidence_of(own) is own.evidence
    found = Evidence(text="inner", spent=True)
    own.__dict__["__rung_evidence__"] = found
    assert evidence_of(own) is found
    other = having(__rung_evidence__=found)
    assert evidence_of(other) is found
    assert carried_evidence(ValueError("x")) is None
    assert carried_evidence(having(__rung_evidence__="nonsense")) is None


def test_our_own_errors() -> None:
    """An open circuit is a service that is down for a while, and an attempt we ended ran into its limit."""
    refused = evidence_of(CircuitOpenError("anthropic", 12.5))
    assert (refused.finding, refused.retry_after, refused.code) == (Kind.SERVICE_DOWN, 12.5, "circuit_open")
    ended = evidence_of(AttemptTimeout(30))
    assert (ended.phase, ended.exceptions) == (Phase.LIMIT, ("rung.errors.AttemptTimeout", "TimeoutError"))


def test_a_mapping() -> None:
    """A response-like mapping is read by its keys, with the body before the message."""
    evidence = evidence_of(
        {
            "status": 500,
            "code": "boom",
            "headers": {"Retry-After": 4},
            "body": b"went wrong",
            "message": "not this",
            "exception_type": "ValueError",
            "exit_code": 3,
            "form": "tool",
        }
    )
    assert evidence == Evidence(
        text="went wrong",
        status=500,
        code="boom",
        headers={"retry-after": "4"},
        exceptions=("ValueError",),
        exit_code=3,
        retry_after=4.0,
        phase=Phase.TOOL,
    )
    assert evidence_of({"message": "m", "body": ""}) == Evidence(text="m")
    assert evidence_of({"exit_code": 0}).exit_code == 0
    assert evidence_of({}) == Evidence()


@pytest.mark.parametrize("status", [True, "500", 500.0, None, [500]])
def test_what_is_no_status_in_a_mapping(status: Any) -> None:
    """A status or exit code that is no whole number is no fact."""
    evidence = evidence_of({"status": status, "exit_code": status, "code": status})
    assert (evidence.status, evidence.exit_code) == (None, None)


# From here on: things that misbehave. Classify must name them all.


class Raises:
    """Whatever is asked of it, it raises."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("no")

    __str__ = __repr__ = __bool__ = __len__ = __iter__ = __eq__ = __getattr__ = _raise
    __hash__ = object.__hash__


class Broken(Exception):
    """An exception of which nothing can be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    @property
    def response(self) -> Any:
        raise RuntimeError("no response")

    status_code = status = headers = code = type = response


class BrokenChain(Exception):
    @property
    def __cause__(self) -> Any:  # type: ignore[override]  # as somebody might
        raise RuntimeError("no cause")


class Stringy(Exception):
    __cause__ = "because"  # type: ignore[assignment]  # as somebody might


class HugeText(Exception):
    def __str__(self) -> str:
        return "a" + "x" * 1_000_000 + "z"


class NoText(Exception):
    def __str__(self) -> str:
        return cast("str", 5)


class Bare(AttemptError):
    """A subclass that forgets to tell its parent."""

    def __init__(self) -> None:
        pass


class BrokenNumber(OSError):
    @property
    def errno(self) -> int:  # type: ignore[override]  # as somebody might
        raise RuntimeError("no number")


class BrokenMapping(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no keys")

    def __len__(self) -> int:
        raise RuntimeError("no length")


def endless(length: int) -> Exception:
    error = Exception("root")
    for number in range(length):
        error = raised(Exception(str(number)), cause=error)
    return error


def circle() -> Exception:
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__context__ = two, one
    return one


HOSTILE: dict[str, Any] = {
    "nothing can be read": Broken(),
    "nothing can be asked": Raises(),
    "cause raises": BrokenChain("x"),
    "cause is a text": Stringy("x"),
    "cause breaks": raised(ValueError("x"), cause=Broken()),
    "huge text": HugeText(),
    "text is a number": NoText(),
    "no evidence": Bare(),
    "error number raises": BrokenNumber(1, "x"),
    "error number is a text": OSError("strange", "x"),
    "circle": circle(),
    "own cause": raised(ValueError("x"), context=ValueError("y")),
    "ten thousand causes": endless(10_000),
    "headers are a list": having(headers=[("retry-after", "5")]),
    "headers are a text": having(headers="retry-after: 5"),
    "headers are a class": having(headers=dict),
    "headers raise": having(headers=Raises()),
    "headers hold what raises": having(headers={"a": Raises()}),
    "headers are odd pairs": having(headers=SimpleNamespace(items=lambda: [1, 2])),
    "items is no method": having(headers=SimpleNamespace(items=3)),
    "response raises": having(response=Raises(), headers={"retry-after": "5"}),
    "response is a table": having(response={"status_code": 500}),
    "code is huge": having(code="x" * 1_000_000),
    "surrogates": ValueError("\ud800 429 \udfff"),
    "nulls": ValueError("\x00\x00Error: 429\x00"),
    "bytes": b"\xff\xfe\x00",
    "exit": SystemExit("message"),
    "interrupt": KeyboardInterrupt(),
    "group": ExceptionGroup("several", [ValueError("a"), HttpError(429)]),
    "class": ValueError,
    "mapping that breaks": BrokenMapping(),
    "odd keys": {1: 2, None: 3, ("a", "b"): 4, b"status": 500, "status": "500"},
    "values that raise": dict.fromkeys(("status", "code", "body", "headers", "exception_type", "form"), Raises()),
    "headers with odd keys": {"headers": {1: 2, None: None, b"x": b"y", ("a",): ["b"]}},
    "headers that break": {"headers": BrokenMapping()},
    "body is a table": {"body": {"error": {"type": "overloaded_error"}}},
    "body is huge": {"body": b"x" * 1_000_000},
    "code of a mapping is huge": {"code": "x" * 1_000_000},
    "evidence attached that is none": having(__rung_evidence__=Raises()),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_breaks_the_reading(name: str) -> None:
    """Whatever the trouble does when it is looked at, it gets a name, a fingerprint and bounded facts."""
    failure = classify(HOSTILE[name])
    assert isinstance(failure.kind, Kind)
    assert len(failure.fingerprint) == 12
    evidence = failure.evidence
    assert len(evidence.text) <= TEXT_LIMIT
    assert len(evidence.code) <= CODE_LIMIT
    assert all(isinstance(fact, str) for fact in (evidence.text, evidence.code, *evidence.exceptions))
    assert all(isinstance(fact, int | None) for fact in (evidence.status, evidence.errno, evidence.exit_code))
    json.dumps({**evidence.headers, "errno": evidence.errno})


def test_what_can_be_read_is_read() -> None:
    """One attribute that breaks does not hide the others."""

    class Half(Exception):
        @property
        def status_code(self) -> int:
            raise RuntimeError("no")

    error = Half("x")
    error.__dict__.update(status=429, headers={"retry-after": "5"}, type="slow_down")
    evidence = evidence_of(error)
    assert (evidence.status, evidence.retry_after, evidence.code) == (429, 5.0, "slow_down")
    assert evidence_of(Broken()).text == "Broken"


def test_huge_texts_keep_both_ends() -> None:
    """Of a huge message the head and the tail are kept."""
    text = evidence_of(HugeText()).text
    assert (text[0], text[-1]) == ("a", "z")


def test_long_chains_end() -> None:
    """Of ten thousand causes only the outermost are read, and a circle is walked once."""
    assert evidence_of(endless(10_000)).exceptions == ("Exception",) * CHAIN_LIMIT
    assert evidence_of(circle()).exceptions == ("ValueError", "KeyError", "LookupError")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = ("status_code", "status", "code", "type", "headers", "response", "errno", "message", "body", "exception_type")


@given(JUNK, st.dictionaries(st.sampled_from(NAMES), JUNK, max_size=5), st.sampled_from([Exception, OSError]))
def test_any_junk_has_a_name(thing: Any, facts: dict[str, Any], base: type[Exception]) -> None:
    """Any value, any mapping and any exception with any attributes gets a name."""
    error = base(thing)
    for name, value in facts.items():
        try:
            setattr(error, name, value)
        except TypeError:
            assume(False)
    for trouble in (thing, facts, error, raised(ValueError(thing), cause=error)):
        failure = classify(trouble)
        assert isinstance(failure.kind, Kind)
        assert failure.fingerprint


# Adapters: readers for one package's objects.


class Foreign(Exception):
    """As a package of its own would have it."""


class ForeignResult:
    """Something that is no exception."""


Foreign.__module__ = ForeignResult.__module__ = "foreign_pkg.errors"


@pytest.fixture
def reader() -> Iterator[list[Any]]:
    """A reader for foreign_pkg, which answers with what it is given here, or raises it."""
    answers: list[Any] = []

    def read(_: object) -> Evidence | None:
        answer = answers[0]
        if isinstance(answer, Exception):
            raise answer
        return cast("Evidence | None", answer)

    READERS["foreign_pkg"] = read
    yield answers
    del READERS["foreign_pkg"]


def test_an_adapter_reads_first(reader: list[Any]) -> None:
    """What an adapter says of its package's object counts, also for what is no exception, and inside a chain."""
    reader.append(Evidence(text="told", status=418, code="inner"))
    assert evidence_of(Foreign("x")).status == 418
    assert evidence_of(ForeignResult()).text == "told"
    wrapped = evidence_of(raised(HttpError(0, "outer", code="outer"), cause=Foreign("x")))
    assert (wrapped.status, wrapped.code, wrapped.text) == (418, "outer inner", "outer\ncaused by: told")


@pytest.mark.parametrize("answer", [None, RuntimeError("broken")])
def test_an_adapter_that_knows_nothing(reader: list[Any], answer: Any) -> None:
    """An adapter that says nothing, or breaks, costs nothing: the object is read like any other."""
    reader.append(answer)
    assert evidence_of(Foreign("x")).text == "x"
    assert evidence_of(ForeignResult()).text.startswith("<")


def test_members_of_a_group() -> None:
    """What a group holds is read like a chain."""
    group = ExceptionGroup("both", [ValueError("a"), HttpError(429, "slow")])
    evidence = evidence_of(group)
    assert (evidence.status, "a" in evidence.text, "slow" in evidence.text) == (429, True, True)


def test_a_bug_while_handling_is_the_trouble() -> None:
    """A mistake made while an error was handled is named, not the error."""
    assert evidence_of(raised(TypeError("bug"), context=HttpError(429, "slow"))).status is None


def test_a_body_of_any_kind() -> None:
    """A body may be a mapping, a list, bytes or an object; of what is deep or wide only the start is read."""

    class Body:
        def __str__(self) -> str:
            return "a body"

    nested: Any = "end"
    for _ in range(40):
        nested = [nested, (1, 2.5, None, True)]
    assert evidence_of({"body": {"error": {"message": 'say "x"', "code": 7, "odd": Body()}}}).text == (
        '{"error": {"message": "say \\"x\\"", "code": 7, "odd": "a body"}}'
    )
    assert "…" in evidence_of({"body": nested}).text
    assert len(evidence_of({"body": ["x" * 50] * 10_000}).text) < 2 * TEXT_LIMIT
    assert len(evidence_of({"body": {f"k{n}": "x" * 50 for n in range(10_000)}}).text) < 2 * TEXT_LIMIT
    assert evidence_of({"body": b"x" * 10 * TEXT_LIMIT}).text.startswith("xxx")
    assert evidence_of({"body": Body()}).text == "a body"


def test_many_classes() -> None:
    """The names of classes are remembered, and forgotten when there are too many."""
    for number in range(1_005):
        assert evidence_of(type(f"Odd{number}", (ValueError,), {})()).exceptions[0].endswith(f"Odd{number}")


def test_a_body_beside_the_text() -> None:
    """What an exception's body says and its text does not is read as well."""

    class WithBody(Exception):
        body = MappingProxyType({"error": {"message": "the reason"}})

    assert "the reason" in evidence_of(WithBody("failed")).text
    assert evidence_of(WithBody('{"error": {"message": "the reason"}}')).text.count("the reason") == 1


def test_secrets_are_cut_everywhere() -> None:
    """Text, code, stack and headers: what is kept has no key in it, and what had none is kept as it is."""
    key = "sk-" + "ant-" + "a1" * 20
    dirty = Evidence(text=f"bad {key}", code=key, stack=f"line {key}", headers={"x-request-id": "r", "server": key})
    assert key not in repr(without_secrets(dirty))
    clean = Evidence(text="bad", code="c", stack="line", headers={"server": "x"})
    assert without_secrets(clean) is clean


@pytest.mark.parametrize("name", ["retry-after", "Retry-After", "RETRY-AFTER"])
def test_headers_of_an_attempt_error_are_read_in_any_case(name: str) -> None:
    """The wait in the headers that an attempt gives is read, as that of a response is."""
    failure = classify(AttemptError("slow down", status=429, headers={name: "7200"}))
    assert failure.retry_after == 7_200
    assert classify(AttemptError("slow down", headers={name: "7"}, retry_after=3.0)).evidence.retry_after == 3
