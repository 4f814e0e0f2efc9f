"""What coding agents print; the shapes are those that the real ones printed against a loopback API.

Claude Code 2.1.325, codex and gemini-cli of November 2026, shortened to what is read.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.adapters.coding_agents import read_result
from rung.core.failures import Evidence, Phase


def claude(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "num_turns": 1, "total_cost_usd": 0, **fields}


def found(result: dict[str, Any]) -> Evidence:
    evidence = read_result(result)
    assert evidence is not None
    return evidence


def test_claude_code_calls_an_api_error_a_success() -> None:
    """`is_error` counts, whatever `subtype` says; status and type are the API's."""
    said = "API Error: 529 Overloaded. This is a server-side issue, usually temporary"
    evidence = found(
        claude(terminal_reason="api_error", api_error_status=529, api_error_type="overloaded_error", result=said)
    )
    assert (evidence.status, evidence.code) == (529, "overloaded_error api_error")
    assert (evidence.text, evidence.provider, evidence.phase) == (said, "anthropic", Phase.CALL)


def test_claude_code_with_too_long_a_prompt() -> None:
    """The reason it stopped is a code beside the API's type."""
    evidence = found(
        claude(
            terminal_reason="prompt_too_long", api_error_status=400, api_error_type="invalid_request_error",
            result="Prompt is too long · the request is ~210000 tokens (limit 200000)",
        )
    )  # fmt: skip
    assert (evidence.status, evidence.code) == (400, "invalid_request_error prompt_too_long")


def test_claude_code_out_of_turns() -> None:
    """There is no result then; the words stand in `errors`."""
    evidence = found(
        claude(subtype="error_max_turns", terminal_reason="max_turns", errors=["Reached maximum number of turns (2)"])
    )
    assert evidence.code == "max_turns error_max_turns"
    assert evidence.text == "Reached maximum number of turns (2)"
    assert (evidence.status, evidence.phase) == (None, Phase.RESULT)


def test_claude_code_that_names_an_error_and_denies_it() -> None:
    """A subtype that says error is one even if `is_error` does not."""
    assert found(claude(subtype="error_during_execution", is_error=False)).code == "error_during_execution"


@pytest.mark.parametrize(
    ("message", "status", "phase"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", 429, Phase.CALL),
        ("unexpected status 401 Unauthorized: Incorrect API key provided, url: http://x/v1", 401, Phase.CALL),
        ("Codex ran out of room in the model's context window.", None, Phase.CALL),
        ("stream disconnected before completion: Transport error: network error", None, Phase.STREAM),
        ("the exit status 101 of a build", None, Phase.CALL),
    ],
)
def test_codex_says_it_in_words(message: str, status: int | None, phase: Phase) -> None:
    """A turn that failed, and the error before it, say the same."""
    for event in ({"type": "turn.failed", "error": {"message": message}}, {"type": "error", "message": message}):
        evidence = found(event)
        assert (evidence.text, evidence.status, evidence.phase) == (message, status, phase)


def test_gemini_with_the_status_as_code() -> None:
    """The API's JSON is the message; its status's name is the code."""
    message = '{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[]}}'
    evidence = found({"session_id": "s", "error": {"type": "Error", "message": message, "code": 400}})
    assert (evidence.status, evidence.code, evidence.exit_code) == (400, "INVALID_ARGUMENT", None)
    assert (evidence.text, evidence.provider) == (message, "google")


def test_gemini_with_an_exit_code() -> None:
    """Its own errors give the exit code it ends with."""
    error = {"type": "FatalAuthenticationError", "message": "Invalid auth method selected.", "code": 41}
    evidence = found({"session_id": "s", "error": error})
    assert (evidence.status, evidence.exit_code, evidence.code) == (None, 41, "FatalAuthenticationError")


def test_gemini_as_a_stream_of_events() -> None:
    """The last event holds the error; the status is in its words alone."""
    message = '[API Error: {"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]'
    evidence = found({"type": "result", "status": "error", "error": {"type": "unknown", "message": message}})
    assert (evidence.status, evidence.code) == (400, "INVALID_ARGUMENT")
    assert found({"type": "error", "severity": "error", "message": "Loop detected"}).text == "Loop detected"
    assert found({"type": "result", "status": "error"}).text == "status: error"


@pytest.mark.parametrize(
    "result",
    [
        claude(is_error=False, terminal_reason="completed", api_error_status=None, result="done"),
        {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 529, "error": "overloaded"},
        {"type": "thread.started", "thread_id": "t"},
        {"type": "error", "message": "Reconnecting... 2/5"},
        {"type": "error", "message": "Reconnecting... waiting for network (Connection failed)"},
        {"type": "item.completed", "item": {"type": "error", "message": "Model metadata not found."}},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
        {"session_id": "s", "response": "done", "stats": {}},
        {"type": "result", "status": "success", "stats": {}},
        {"type": "error", "severity": "warning", "message": "slow"},
        {"type": "tool_result", "status": "error", "error": {"type": "x", "message": "no such file"}},
        {},
    ],
)
def test_what_is_fine_or_still_going_on(result: dict[str, Any]) -> None:
    """Results that are good, and events that end nothing, are no trouble."""
    assert read_result(result) is None


@given(
    st.dictionaries(
        st.sampled_from(["type", "subtype", "is_error", "error", "errors", "result", "message", "status", "code"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.sampled_from(["result", "error", "turn.failed", "x"]),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["type", "message", "code"]), inner, max_size=3)
            ),
            max_leaves=5,
        ),
    )
)
def test_no_result_breaks_it(result: dict[str, Any]) -> None:
    """Whatever is in a result, reading it raises nothing."""
    assert isinstance(read_result(result), Evidence | None)
