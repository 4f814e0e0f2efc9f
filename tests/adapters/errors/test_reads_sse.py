"""Errors among the events of a stream that began well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.adapters.errors.sse import read_event
from rung.core.domain.failures import Phase

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider


def failed(error: object) -> dict[str, object]:
    return {"type": "response.failed", "response": {"id": "r", "status": "failed", "error": error}}


def incomplete(details: object) -> dict[str, object]:
    return {"type": "response.incomplete", "response": {"id": "r", "incomplete_details": details}}


@pytest.mark.parametrize(
    ("event", "data", "code", "status", "text"),
    [
        # Anthropic
        ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         "overloaded_error", None, "Overloaded"),
        ("error", {"type": "error", "error": {"type": "api_error", "message": "m", "details": {"error_code": "x"}}},
         "api_error x", None, "m"),
        # OpenAI Responses
        ("error", {"type": "error", "code": "server_error", "message": "boom", "param": None, "sequence_number": 1},
         "server_error", None, "boom"),
        ("response.failed", failed({"code": "rate_limit_exceeded", "message": "Please try again in 11.5s."}),
         "rate_limit_exceeded", None, "Please try again in 11.5s."),
        ("", failed({"code": "context_length_exceeded", "message": "too much"}),
         "context_length_exceeded", None, "too much"),
        ("response.failed", failed(None), "response.failed", None, "response.failed"),
        ("response.incomplete", incomplete({"reason": "max_output_tokens"}),
         "max_output_tokens", None, "incomplete: max_output_tokens"),
        ("", incomplete({"reason": "content_filter"}), "content_filter", None, "incomplete: content_filter"),
        # chat completions, and services that speak them
        ("", {"error": {"message": "boom", "type": "server_error", "code": None}}, "server_error", None, "boom"),
        ("", {"id": "x", "choices": [], "error": {"code": 502, "message": "Provider returned error"}},
         "", 502, "Provider returned error"),
        ("", {"error": "just words"}, "", None, "just words"),
        # Google
        ("", {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
         "UNAVAILABLE", 503, "overloaded"),
        # no JSON at all
        ("error", "upstream went away", "", None, "upstream went away"),
    ],
)  # fmt: skip
def test_an_event_that_says_what_went_wrong(event: str, data: object, code: str, status: int | None, text: str) -> None:
    """Its type and code, a status where one is given, and its message; the phase is the stream."""
    evidence = read_event(event, data if isinstance(data, str) else json.dumps(data))
    assert evidence is not None
    assert (evidence.code, evidence.status, evidence.text, evidence.phase) == (code, status, text, Phase.STREAM)


def test_a_wait_in_words() -> None:
    """A stream has no headers left to say it in."""
    evidence = read_event("response.failed", json.dumps(failed({"code": "x", "message": "Please try again in 11.5s."})))
    assert evidence is not None
    assert evidence.retry_after == 11.5


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("ping", '{"type": "ping"}'),
        ("content_block_delta", '{"type": "content_block_delta", "delta": {"text": "an \\"error\\" in words"}}'),
        ("", '{"choices": [{"delta": {"content": "x"}}], "error": null}'),
        ("response.completed", '{"type": "response.completed", "response": {"error": null}}'),
        ("response.output_text.delta", '{"type": "response.output_text.delta", "delta": "\\"error\\""}'),
        ("", "[DONE]"),
        ("", '{"error" broken'),
        ("", '["error"]'),
        ("", ""),
    ],
)
def test_an_event_that_is_part_of_an_answer(event: str, data: str) -> None:
    """Nothing is said of it, even where it talks about errors."""
    assert read_event(event, data) is None


@given(
    st.sampled_from(["", "error", "response.failed", "response.incomplete", "delta"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "error", "code", "message", "response", "details"]), inner)
        ),
        max_leaves=8,
    ),
)
def test_no_event_breaks_it(event: str, data: object) -> None:
    """Whatever is in an event, reading it raises nothing."""
    evidence = read_event(event, json.dumps(data))
    assert evidence is None or evidence.phase is Phase.STREAM


def test_from_a_real_stream(provider: Provider) -> None:
    """The first event is part of the answer, the second is found as it comes over the wire."""
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.streams(("message_start", {"type": "message_start"}), ("error", overloaded))
    found: list[Evidence | None] = []
    with httpx.stream("GET", provider.url) as response:
        name = ""
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            name = value if field == "event" else name
            if field == "data":
                found.append(read_event(name, value))
    assert found[0] is None
    assert found[1] is not None
    assert found[1].code == "overloaded_error"
