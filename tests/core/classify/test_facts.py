"""Facts are read from JSON, from a repr and from truncated text alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.classify.read_facts import read_facts
from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from rung.core.classify.facts import Facts

BODY = {"error": {"message": "out of seats", "type": "seat_error", "code": "no_seat"}, "status": 503, "id": "x"}


def facts_of(text: str, phase: Phase = Phase.CALL) -> Facts:
    return read_facts(Evidence(text=text, phase=phase))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(BODY),
        json.dumps(BODY, indent=2),
        repr(BODY),
        f"Error code: 503 - {BODY!r}",
        f"sdk.Failure: b'{json.dumps(BODY)}'",
        json.dumps({"message": json.dumps(BODY)}),
        json.dumps({"error": {"message": json.dumps({"error": {"message": json.dumps(BODY)}})}}),
        f"event: error\ndata: {json.dumps(BODY)}\n\n",
        json.dumps(BODY)[:-4],
        json.dumps([BODY]),
    ],
)
def test_the_same_facts_in_any_wrapping(text: str) -> None:
    """Message, type, code and status are found wherever they stand."""
    facts = facts_of(text)
    assert facts.message == "out of seats"
    assert {"seat_error", "no_seat"} <= facts.codes
    assert facts.status == 503


@given(
    st.dictionaries(
        st.sampled_from(["message", "type", "code", "detail", "x"]), st.text("abc :'-", min_size=1), min_size=1
    )
)
def test_json_is_read_as_it_would_be_dug(body: dict[str, str]) -> None:
    """Parsed or dug out, JSON says the same."""
    parsed, dug = facts_of(json.dumps(body)), facts_of("error: " + json.dumps(body))
    assert parsed.codes == dug.codes
    if any(name in body for name in ("message", "detail")):
        assert parsed.message == dug.message


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"code": "429", "message": "x"}', 429),
        ('{"status": 200, "code": 503, "message": "x"}', 503),
        ('{"type": "upstream_error", "param": "524", "message": "x"}', 524),
        ("error: {'param': '524', 'code': 'bad_response_status_code'}", 524),
        ('{"param": "messages", "message": "x"}', None),
        ('{"code": 4290, "message": "x"}', None),
        ("Error code: 404 - gone", 404),
        ("HTTP/1.1 502 Bad Gateway", 502),
        ("request failed with status code 500", 500),
        ("[503 Service Unavailable] x", 503),
        ("500 - api_error: x", 500),
        ("<html><head><title>api.example | 502: Bad gateway</title></head>", 502),
        ("429 tests passed", None),
        ("took 500 ms", None),
        ("port 5000", None),
        ("$429 paid", None),
        ("released in 404 BC", None),
    ],
)
def test_a_status_in_words(text: str, status: int | None) -> None:
    """A number is a status only where the words around it say so."""
    assert facts_of(text).status == status


def test_a_page_for_people_tells_by_its_title() -> None:
    """Of an HTML page only the title counts: its style and its advice say nothing."""
    page = "<!DOCTYPE html><html><head><title>Error</title></head><body>currently unavailable, rate limit</body></html>"
    assert classify({"status": 502, "body": page}).kind is Kind.SERVER_ERROR
    assert facts_of("<title>unclosed").message == "unclosed"


def test_a_prompt_is_not_believed() -> None:
    """What a service gives back of the request is not what it says about it."""
    text = "BadRequestError: cannot use {'role': 'user', 'content': 'too many requests, quota exceeded'}"
    assert classify(text).kind is Kind.INVALID_REQUEST


def test_too_many_fields_are_not_all_read() -> None:
    """A body of thousands of fields is read as far as an error goes."""
    body = {"error": [{"message": f"m{number}"} for number in range(1_000)]}
    assert facts_of(json.dumps(body)).message.count("\n") < 300
    assert facts_of("x: " + json.dumps(body)).message.count("\n") < 300


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("openai.RateLimitError: no", {"RateLimitError"}),
        ("RetryError [AI_RetryError]: no", {"RetryError", "AI_RetryError"} - {"RetryError"}),
        ("An error occurred (ThrottlingException) when calling", {"ThrottlingException"}),
        ("an error: no", set()),
        ("someError: no", set()),
    ],
)
def test_classes_in_words(text: str, names: set[str]) -> None:
    """The name of a class at the place where errors have it."""
    assert facts_of(text).exception_names == names


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        ("<returncode>2</returncode>\n<output>\nx</output>", 2),
        ("<returncode>-9</returncode>", -9),
        ("x\nCommand exited with code 3", 3),
        ("exit=137", 137),
        ("Exit code: 4", 4),
        ("exited with an error (POSIX exit code: 1)", 1),
        ("exit=0", None),
        ("no exit", None),
    ],
)
def test_an_exit_code_in_words(text: str, exit_code: int | None) -> None:
    """What a wrapper says of the exit is as good as being told."""
    assert facts_of(text, Phase.TOOL).exit_code == exit_code


def test_a_wrapper_does_not_overrule() -> None:
    """An exit code that is known stays."""
    assert read_facts(Evidence(text="<returncode>2</returncode>", phase=Phase.TOOL, exit_code=1)).exit_code == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", "KeyError"),
        ("KeyError: 'a'\n\nDuring handling\n\npkg.mod.OddError: b", "OddError"),
        ("x\nUncaught TypeError: y\n    at z", "TypeError"),
        ("some Error words\n no class here", None),
        ("Error\n" * 9, None),
    ],
)
def test_the_last_exception_of_a_program(text: str, name: str | None) -> None:
    """The class a program ended with."""
    assert read_facts(Evidence(text=text, phase=Phase.TOOL, exit_code=1)).exception_names == ({name} if name else set())


def test_a_service_speaks_in_a_tool() -> None:
    """A tool that passes on what a service said: its fields and its wait count."""
    said = 'API Error: 529 {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    facts = read_facts(Evidence(text=said, phase=Phase.TOOL, exit_code=1))
    assert (facts.status, facts.message_text) == (529, " | overloaded | ")
    assert read_facts(Evidence(text=said, phase=Phase.TOOL, status=500)).status == 500


@pytest.mark.parametrize("head", ["", "log: "])
def test_a_result_that_failed(head: str) -> None:
    """A coding agent's result that says success and is an error tells by its result, wrapped or not."""
    done = json.dumps({"subtype": "success", "is_error": True, "result": "API Error: 529 Overloaded"})
    assert facts_of(head + done, Phase.RESULT).message == "API Error: 529 Overloaded"
    fine = json.dumps({"subtype": "success", "is_error": False, "result": "all done"})
    assert facts_of(head + fine, Phase.RESULT).message != "all done"


def test_odd_fields() -> None:
    """A blocked prompt, a code too long to be one, an empty message, a list of messages, a status that is none."""
    assert "content_filter" in facts_of('{"promptFeedback": {"blockReason": "ODD_NEW_REASON"}}').codes
    assert facts_of(json.dumps({"code": "x" * 200, "message": "y"})).codes == set()
    assert facts_of('{"message": "", "detail": "real"}').message == "real"
    assert facts_of("x: {'message': '', 'detail': 'real'}").message == "real"
    assert facts_of("x: {'is_error': 'yes', 'message': 'm'}").message == "m"
    assert facts_of('{"errors": ["x", {"message": "m"}]}').message == "x\nm"
    assert facts_of("""said: {'errors': ['x', 'y']}""").message == "x"
    assert facts_of('{"status": 404, "code": 7, "message": "y"}').status == 404
