"""Results that coding agents print: the shapes are those that the real ones printed against a loopback API.

Claude Code 2.1.325, codex and gemini-cli of November 2026, shortened to what is read.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rung.adapters.system.command_result import output_or_raise
from rung.core.classify.classifier import classify
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind


def claude(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "num_turns": 1, "total_cost_usd": 0, **fields}


def codex(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


API_ERROR = '{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[]}}'


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (
            claude(terminal_reason="api_error", api_error_status=529, result="API Error: 529 Overloaded."),
            Kind.OVERLOADED,
        ),
        (
            claude(
                terminal_reason="prompt_too_long", api_error_status=400, result="Prompt is too long · ~210000 tokens"
            ),
            Kind.CONTEXT_LIMIT,
        ),
        (
            claude(
                subtype="error_max_turns", terminal_reason="max_turns", errors=["Reached maximum number of turns (2)"]
            ),
            Kind.TURNS_EXHAUSTED,
        ),
        (codex("exceeded retry limit, last status: 429 Too Many Requests"), Kind.RATE_LIMIT),
        (codex("unexpected status 401 Unauthorized: Incorrect API key provided, url: http://x/v1"), Kind.AUTH_ERROR),
        (codex("Codex ran out of room in the model's context window."), Kind.CONTEXT_LIMIT),
        (codex("stream disconnected before completion: Transport error"), Kind.STREAM_INTERRUPTED),
        ({"session_id": "s", "error": {"type": "Error", "message": API_ERROR, "code": 400}}, Kind.AUTH_ERROR),
        ({"type": "result", "status": "error", "error": {"type": "unknown", "message": API_ERROR}}, Kind.AUTH_ERROR),
    ],
)
def test_a_result_that_reports_an_error_is_a_failure(result: dict[str, Any], kind: Kind, exit_code: int) -> None:
    """Whatever the exit code and `subtype` say, the reported error counts, and its kind is read off it."""
    with pytest.raises(AttemptError) as raised:
        output_or_raise(exit_code, "progress\n" + json.dumps(result), "")
    assert classify(raised.value).kind is kind


def test_an_error_list_is_the_message() -> None:
    """Where there is no result, the words in `errors` are shown."""
    with pytest.raises(AttemptError, match="Reached maximum number of turns"):
        output_or_raise(1, json.dumps(claude(errors=["Reached maximum number of turns (2)"])), "")


@pytest.mark.parametrize(
    "result",
    [
        claude(is_error=False, terminal_reason="completed", api_error_status=None, result="done"),
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
        {"session_id": "s", "response": "done", "stats": {}},
        {"type": "result", "status": "success", "stats": {}},
    ],
)
def test_a_good_result_is_the_output(result: dict[str, Any]) -> None:
    """A result without an error is returned as it was printed."""
    assert output_or_raise(0, json.dumps(result), "") == json.dumps(result)


LIMIT = "Claude usage limit reached. Your limit resets 3am"
TRACEBACK = (
    'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    go()\nValueError: no such colour'
)


@pytest.mark.parametrize(
    ("output", "errors", "line"),
    [
        (f"[nightly] pulling repo\n[nightly] starting agent\n{LIMIT}\n", "", LIMIT),
        (f"{LIMIT}\n[nightly] cleaning up\n[nightly] done\n", "", LIMIT),
        ("", TRACEBACK, "ValueError: no such colour"),
        ("step one\nstep two broke\n---\n}\n", "", "step two broke"),
        (
            "",
            "/app/x.js:3\n\nError: boom\n    at Object.<anonymous> (/app/x.js:3:7)\n\nNode.js v20.11.0\n",
            "Error: boom",
        ),
        ("only this", "", "only this"),
        ("---\n}", "", "---"),
    ],
)
def test_the_line_that_decides_is_the_headline(output: str, errors: str, line: str) -> None:
    """A script's log comes before its error: the line that the kind rests on is quoted, or else the last one."""
    with pytest.raises(AttemptError) as raised:
        output_or_raise(1, output, errors)
    failure = classify(raised.value)
    assert failure.headline() == f"{failure.kind}: {line}"


@pytest.mark.parametrize(
    ("output", "errors", "kind"),
    [
        (LIMIT, "warning: something harmless", "quota_exhausted"),
        (LIMIT, "Debugger attached.\nWaiting for the debugger to disconnect...", "quota_exhausted"),
        ("429 Too Many Requests\n" + "line\n" * 30, "boom", "unknown"),
        (LIMIT, "bash: jq: command not found", "not_found"),
    ],
)
def test_output_is_read_where_standard_error_explains_nothing(output: str, errors: str, kind: str) -> None:
    """The end of standard output decides if no rule recognizes standard error, which is still quoted in the text."""
    with pytest.raises(AttemptError) as raised:
        output_or_raise(1, output, errors)
    assert classify(raised.value).kind == kind
    assert errors in raised.value.evidence.text


def test_a_line_that_does_not_exist_is_not_quoted() -> None:
    """A line number beyond the text, as of a text that was shortened later, gives the first line."""
    failure = classify(AttemptError("first\nsecond", line=9))
    assert failure.headline() == f"{failure.kind}: first"
