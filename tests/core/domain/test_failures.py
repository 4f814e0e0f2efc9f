"""Kinds and their groups, and fingerprints of recurring errors."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import (
    GROUPS,
    INFRASTRUCTURE_KINDS,
    NEVER_RETRYABLE,
    PROVIDER_KINDS,
    TRANSIENT,
    Evidence,
    Failure,
    Kind,
    Phase,
    fingerprint,
)
from rung.core.domain.masks import mask_volatile

DESIGN = {
    "transient": "rate_limit overloaded server_error timeout network stream_interrupted",
    "limits": "context_limit output_limit quota_exhausted resource_exhausted turns_exhausted budget_exhausted",
    "request": (
        "invalid_request auth_error missing_credentials model_unavailable not_found permission_denied "
        "configuration content_filter refusal"
    ),
    "result": (
        "malformed_output partial_output gave_up low_quality goal_misaligned unverified test_failure tool_error "
        "architectural_blocker"
    ),
    "behaviour": "loop_detected stalled capability_mismatch context_warning",
    "crew": (
        "worker_dead worker_hung claim_blocked scope_conflict strategic_ambiguity beyond_authority review_exhausted"
    ),
    "other": "service_down hook_crash unknown",
}

WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=12)
ALNUM = string.ascii_letters + string.digits
NUMBERS = (
    st.integers(0, 10**12).map(str)
    | st.floats(0, 1e300).map(str)
    | st.integers(0, 10**9).map("{:,}".format)
    | st.times().map(str)
    | st.tuples(st.integers(1, 9999), st.integers(1, 999)).map("{0[0]}:{0[1]}".format)
    | st.text("0123456789abcdef", min_size=7, max_size=40).filter(lambda digits: any(d.isdigit() for d in digits))
    | st.integers(0, 2**64).map(hex)
)
IDS = st.tuples(
    st.text(string.ascii_letters, min_size=2, max_size=12),
    st.sampled_from("_-"),
    st.text(ALNUM, min_size=8, max_size=30).filter(lambda text: any(letter.isdigit() for letter in text)),
).map("".join)
TIMES = st.datetimes().map(lambda at: at.isoformat()) | st.datetimes().map(str) | st.dates().map(str)
PARTS = st.text(ALNUM + "._@+-", min_size=1, max_size=20) | st.uuids().map(str) | st.dates().map(str)
PATHS = st.lists(PARTS, min_size=2, max_size=6).map(lambda parts: "/" + "/".join(parts)) | st.lists(
    PARTS, min_size=2, max_size=6
).map(lambda parts: "C:\\" + "\\".join(parts))
UUIDS = st.uuids().map(str) | st.uuids().map(lambda uuid: str(uuid).upper())
CHANGING = [NUMBERS, IDS, TIMES, PATHS, UUIDS]


@st.composite
def two_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Texts with the same words, between which numbers, ids, times, paths and uuids differ."""
    one, other = [draw(WORDS)], []
    other = list(one)
    for values in draw(st.lists(st.sampled_from(CHANGING), max_size=12)):
        word = draw(WORDS)
        one += [draw(values), word]
        other += [draw(values), word]
    return " ".join(one), " ".join(other)


def print_of(text: str = "", kind: Kind = Kind.UNKNOWN, **facts: Any) -> str:
    return fingerprint(kind, Evidence(text=text, **facts))


def test_kinds_are_those_of_the_design() -> None:
    """The kinds and their groups are the closed set of the design, in its order."""
    assert {group: " ".join(kinds) for group, kinds in GROUPS.items()} == DESIGN
    assert [kind for kinds in GROUPS.values() for kind in kinds] == list(Kind)


def test_sets_of_kinds_fit_together() -> None:
    """What is never repeated is not transient, and trouble of the service is never the work's fault."""
    assert frozenset(GROUPS["transient"]) == TRANSIENT
    assert TRANSIENT.isdisjoint(NEVER_RETRYABLE)
    assert PROVIDER_KINDS < TRANSIENT
    assert PROVIDER_KINDS < INFRASTRUCTURE_KINDS
    assert {"auth_error", "missing_credentials", "quota_exhausted", "invalid_request", "refusal"} <= NEVER_RETRYABLE


def test_evidence_may_leave_everything_out() -> None:
    """Evidence of nothing has empty facts, cannot be changed, and its headers cannot be filled."""
    evidence = Evidence()
    assert (evidence.text, evidence.status, evidence.phase, evidence.missing) == ("", None, Phase.CALL, ())
    with pytest.raises(AttributeError):
        evidence.text = "x"  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        evidence.headers["a"] = "b"  # type: ignore[index]  # that is the point


@given(two_texts())
@example(("main.ts:9:15 no such name", "main.ts:120:5 no such name"))
@example(("host 10.0.0.1:80 refused", "host 10.0.0.100:8080 refused"))
@example(("took 1e-05 s", "took 0.5 s"))
@example(("run_550e8400-e29b-41d4-a716-446655440000 died", "run_00000000-ffff-4fff-8fff-aaaaaaaaaaaa died"))
@example(("in /tmp/550e8400-e29b-41d4-a716-446655440000/a", "in /srv/2024-01-02/b"))
@example(("commit 1234567 broke", "commit a3f4567 broke"))
@example(("at 9:15 " + "word " * 300, "at 12:30:45.678901 " + "word " * 300))
@example(("/a/" + "b" * 1000 + " " + "word " * 300, "/a/b " + "word " * 300))
@example(("5 " * 900 + "end", "5000000 " * 900 + "end"))
@example((" " * 900 + "end", "end"))
def test_same_trouble_same_fingerprint(texts: tuple[str, str]) -> None:
    """Texts that differ only in numbers, ids, uuids, paths and times, however long, have the same fingerprint."""
    one, other = texts
    assert mask_volatile(one) == mask_volatile(other)
    assert print_of(one) == print_of(other)


@given(st.lists(WORDS, max_size=15), st.lists(WORDS, max_size=15))
def test_other_words_other_fingerprint(one: list[str], other: list[str]) -> None:
    """Texts of different words have different fingerprints, and those of the same words the same."""
    assert (print_of(" ".join(one)) == print_of(" ".join(other))) is (one == other)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("Request req_011CSHoEeqs5C35K2UUqR7Fy failed", "request <id> failed"),
        ("job 550e8400-E29B-41d4-a716-446655440000", "job <uuid>"),
        ("at 2026-11-15T21:07:33.123Z and 2026-11-15 21:07", "at <time> and <time>"),
        ("File /usr/lib/python3.11/json/decoder.py, line 355", "file <path>, line <n>"),
        ("C:\\Users\\me\\x.txt not found", "<path> not found"),
        ("object at 0x7f13775713f0", "object at <n>"),
        ("too\n\tmany   spaces ", "too many spaces"),
        ("missing_credentials and not_found_error", "missing_credentials and not_found_error"),
        ("and/or", "and/or"),
        ("", ""),
    ],
)
def test_masks(text: str, mask: str) -> None:
    """What changes from one time to the next is masked, and nothing else is."""
    assert mask_volatile(text) == mask


@given(st.text() | st.text("\ud800\udfff\x00\x1f/\\-_:5ae ", max_size=1500))
def test_any_text_has_a_fingerprint(text: str) -> None:
    """Any text, with lone surrogates or control characters too, has a fingerprint of twelve hex digits."""
    digits = print_of(text)
    assert len(digits) == 12
    assert set(digits) <= set(string.hexdigits.lower())
    assert len(mask_volatile(text)) <= 400


def test_fingerprint_sees_more_than_the_text() -> None:
    """The kind, the status, the code and the class of the exception belong to the fingerprint; the rest does not."""
    prints = {
        print_of("x"),
        print_of("x", Kind.TIMEOUT),
        print_of("x", status=500),
        print_of("x", code="overloaded"),
        print_of("x", exceptions=("ValueError",)),
    }
    assert len(prints) == 5
    assert print_of("x") == print_of("x", headers={"a": "b"}, output="y", phase=Phase.TOOL)
    assert print_of("x", exceptions=("A", "B")) == print_of("x", exceptions=("A", "C"))


def test_a_failure_knows_its_fingerprint() -> None:
    """A failure's fingerprint is that of its kind and evidence, and does not change with the rule that named it."""
    evidence = Evidence(text="x", status=500)
    failure = Failure(kind=Kind.SERVER_ERROR, retryable=True, rule="http-5xx", evidence=evidence)
    other = Failure(kind=Kind.SERVER_ERROR, retryable=False, rule="finding", evidence=evidence)
    assert failure.fingerprint == other.fingerprint == print_of("x", Kind.SERVER_ERROR, status=500)


def test_the_headline_of_a_failure() -> None:
    """The kind and the first line that is not blank, shortened; without a message the kind alone."""
    bare = Failure(Kind.TIMEOUT, retryable=True, rule="test")
    assert bare.headline() == "timeout"
    assert bare._replace(message=" \n it took\ntoo long").headline() == "timeout: it took"
    assert bare._replace(message="x" * 300).headline() == f"timeout: {'x' * 199}…"


def test_evidence_takes_the_name_of_a_kind() -> None:
    """A finding and a phase may be names: the failure has the choices, whoever classified equal evidence before."""
    named = Evidence(text="poor", finding="low_quality", phase="result")  # type: ignore[arg-type]  # not type-checked
    assert type(named.finding) is Kind
    assert type(named.phase) is Phase
    assert named == Evidence(text="poor", finding=Kind.LOW_QUALITY, phase=Phase.RESULT)


@pytest.mark.parametrize(("field", "allowed"), [("finding", "low_quality"), ("phase", "result")])
def test_evidence_with_a_wrong_name_is_an_error(field: str, allowed: str) -> None:
    """A name that is none of the choices is an error where it is written, and the error lists the choices."""
    with pytest.raises(ConfigError, match=rf"{field}: 'poor' is invalid; must be one of .*{allowed}"):
        Evidence(**{field: "poor"})  # type: ignore[arg-type]  # not type-checked
