"""Each fault gives the real SDKs the right exception, body, retry delay and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors

import rung
from rung.core.classify.evidence import evidence_of
from rung.testing import FAULTS, words
from tests.testing.clients import PROMPT, WAYS, WIRES, Asker

if TYPE_CHECKING:
    from rung.testing import Lab

EACH = pytest.mark.parametrize(("wire", "stream"), WAYS)
# What each SDK raises for a status; the status where the wires differ.
STATUSES: dict[str, tuple[type[Exception], type[Exception], int, int]] = {
    "bad_request": (anthropic.BadRequestError, openai.BadRequestError, 400, 400),
    "unauthorized": (anthropic.AuthenticationError, openai.AuthenticationError, 401, 401),
    "payment": (anthropic.APIStatusError, openai.APIStatusError, 402, 402),
    "forbidden": (anthropic.PermissionDeniedError, openai.PermissionDeniedError, 403, 403),
    "not_found": (anthropic.NotFoundError, openai.NotFoundError, 404, 404),
    "model_gone": (anthropic.NotFoundError, openai.NotFoundError, 404, 404),
    "request_timeout": (anthropic.APIStatusError, openai.APIStatusError, 408, 408),
    "too_large": (anthropic.APIStatusError, openai.APIStatusError, 413, 413),
    "unprocessable": (anthropic.UnprocessableEntityError, openai.UnprocessableEntityError, 422, 422),
    "rate_limit": (anthropic.RateLimitError, openai.RateLimitError, 429, 429),
    "quota": (anthropic.BadRequestError, openai.RateLimitError, 400, 429),
    "spend_limit": (anthropic.BadRequestError, openai.RateLimitError, 400, 429),
    "server_error": (anthropic.InternalServerError, openai.InternalServerError, 500, 500),
    "bad_gateway": (anthropic.InternalServerError, openai.InternalServerError, 502, 502),
    "unavailable": (anthropic.APIStatusError, openai.InternalServerError, 503, 503),
    "gateway_timeout": (anthropic.APIStatusError, openai.InternalServerError, 504, 504),
    "overloaded": (anthropic.APIStatusError, openai.InternalServerError, 529, 503),
    "wall": (anthropic.APIStatusError, openai.InternalServerError, 529, 503),
    "overflow": (anthropic.BadRequestError, openai.BadRequestError, 400, 400),
}
GOOGLE_STATUSES = {"unauthorized": 400, "quota": 429, "spend_limit": 429, "overloaded": 503, "wall": 503}


def raised(asker: Asker, wire: str, stream: bool, **more: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        asker.ask(wire, stream, **more)
    return caught.value


@EACH
@pytest.mark.parametrize("name", STATUSES)
def test_an_error_status(lab: Lab, asker: Asker, name: str, wire: str, stream: bool) -> None:
    """The SDK raises its own class with the status and the catalogued kind; the next request succeeds."""
    lab.use([{"fault": name, "request": 1}])
    error = raised(asker, wire, stream)
    theirs, others, status, other_status = STATUSES[name]
    if wire == "gemini":
        google_status = GOOGLE_STATUSES.get(name, status)
        assert isinstance(error, errors.ClientError if google_status < 500 else errors.ServerError)
        assert error.code == google_status
    else:
        assert isinstance(error, theirs if wire == "messages" else others)
        assert getattr(error, "status_code", None) == (status if wire == "messages" else other_status)
    keyed = name == "forbidden" and wire != "gemini"  # their 403 is about the key that the call has
    assert rung.classify(error).kind is (rung.Kind.AUTH_ERROR if keyed else FAULTS[name].kind)
    assert lab.calls[0].fault == name
    assert asker.ask(wire, stream).text == words(40)
    assert lab.attempts == 2


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("overloaded", "overloaded_error", "Overloaded"),
        ("rate_limit", "rate_limit_error", "This request would exceed your organization's rate limit"),
        ("quota", "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        ("model_gone", "not_found_error", "model: lab-small"),
        ("unauthorized", "authentication_error", "invalid x-api-key"),
    ],
)
def test_anthropics_words(lab: Lab, asker: Asker, name: str, kind: str, message: str) -> None:
    """Type and message are Anthropic's, with a request id in body and header."""
    lab.use([name])
    error: Any = raised(asker, "messages", False)
    assert error.body["error"]["type"] == kind
    assert message in error.body["error"]["message"]
    assert error.body["request_id"] == error.response.headers["request-id"]


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("quota", "insufficient_quota", "You exceeded your current quota"),
        ("rate_limit", "rate_limit_exceeded", "Rate limit reached for lab-small"),
        ("model_gone", "model_not_found", "The model `lab-small` does not exist"),
        ("unauthorized", "invalid_api_key", "Incorrect API key provided"),
        ("overflow", "context_length_exceeded", ""),
    ],
)
def test_openais_words(lab: Lab, asker: Asker, wire: str, name: str, code: str, message: str) -> None:
    """Code and message are OpenAI's."""
    lab.use([name])
    error: Any = raised(asker, wire, True)
    assert error.code == code
    assert message in error.body["message"]


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("overloaded", "UNAVAILABLE", "The model is overloaded."),
        ("rate_limit", "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
        ("model_gone", "NOT_FOUND", "models/lab-small is not found for API version v1beta"),
        ("unauthorized", "INVALID_ARGUMENT", "API key not valid."),
        ("overflow", "INVALID_ARGUMENT", "The input token count"),
    ],
)
def test_googles_words(lab: Lab, asker: Asker, name: str, status: str, message: str) -> None:
    """Status and message are Google's."""
    lab.use([name])
    error: Any = raised(asker, "gemini", True)
    assert error.status == status
    assert message in error.message


@pytest.mark.parametrize("form", ["seconds", "ms", "date", "text", "reset"])
def test_a_wait_in_each_form_of_google(lab: Lab, asker: Asker, form: str) -> None:
    """Google's delay is in the details of the error, unless it is in its text."""
    lab.use([{"fault": "rate_limit", "retry_after": 20, "form": form}])
    error: Any = raised(asker, "gemini", False)
    assert rung.classify(error).retry_after == pytest.approx(20, abs=1.1)
    kinds = [detail["@type"] for detail in error.details["error"]["details"]]
    assert any(kind.endswith("RetryInfo") for kind in kinds) == (form != "text")


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize("form", ["seconds", "ms", "date", "text", "reset"])
def test_a_wait_in_each_form(lab: Lab, asker: Asker, wire: str, form: str) -> None:
    """Each form of the retry delay (seconds, ms, date, text, reset) gives twenty seconds."""
    lab.use([{"fault": "rate_limit", "retry_after": 20, "form": form}])
    error: Any = raised(asker, wire, False)
    assert rung.classify(error).retry_after == pytest.approx(20, abs=1.1)
    assert ("retry-after" in error.response.headers) == (form in {"seconds", "date"})
    assert ("retry-after-ms" in error.response.headers) == (form == "ms")


@pytest.mark.parametrize("status", [402, 409, 418, 520, 522, 524])
def test_any_status(lab: Lab, asker: Asker, status: int) -> None:
    """`status` returns any status; Cloudflare's own statuses come as its pages."""
    lab.use([{"fault": "status", "status": status}])
    error: Any = raised(asker, "messages", False)
    assert error.status_code == status
    assert ("cloudflare" in error.response.text) == (status >= 520)


@EACH
@pytest.mark.parametrize("name", ["reset", "reset_headers"])
def test_a_connection_that_is_reset(lab: Lab, asker: Asker, name: str, wire: str, stream: bool) -> None:
    """The SDK sees a connection reset, and the record says so."""
    lab.use([{"fault": name, "times": 1}])
    error = raised(asker, wire, stream)
    assert evidence_of(error).errno == 104
    assert rung.classify(error).kind is FAULTS[name].kind
    assert lab.calls[0].ended == "reset"
    assert asker.ask(wire, stream).text == words(40)


@EACH
@pytest.mark.parametrize("name", ["slow", "stall"])
def test_silence(lab: Lab, name: str, wire: str, stream: bool) -> None:
    """The SDK times out; the record says that the client left."""
    lab.use([{"fault": name, "seconds": 30}])
    with Asker(lab.url, seconds=0.2) as hasty:
        error = raised(hasty, wire, stream)
    assert rung.classify(error).kind is FAULTS[name].kind


@EACH
def test_a_pause_that_ends(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """A stall shorter than the client's timeout loses nothing; pings are not content."""
    lab.use([{"fault": "stall", "seconds": 0.05, "pings": True}])
    assert asker.ask(wire, stream).text == words(40)


@EACH
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_connection_that_breaks_within_an_answer(lab: Lab, asker: Asker, how: str, wire: str, stream: bool) -> None:
    """A cut after five tokens, or inside a body, raises a transport error in both SDKs."""
    lab.use([{"fault": "cut", "how": how}])
    error = raised(asker, wire, stream)
    if wire == "gemini" or (wire == "messages" and stream):
        assert isinstance(error, httpx2.TransportError)
    else:
        assert isinstance(error, (anthropic.APIConnectionError, openai.APIConnectionError))
    kind = rung.Kind.STREAM_INTERRUPTED if how == "close" else rung.Kind.NETWORK
    assert rung.classify(error).kind is kind
    assert (lab.calls[0].ended, lab.calls[0].tokens) == (how, 5 if stream else 0)


@pytest.mark.parametrize("after", [0, 1, 39, 40, 400])
def test_a_break_after_any_number_of_tokens(lab: Lab, asker: Asker, after: int) -> None:
    """Exactly this many tokens arrive, without the terminal event."""
    lab.use([{"fault": "cut", "after": after}])
    stream = asker.openai.chat.completions.create(
        model="m", messages=[{"role": "user", "content": PROMPT}], stream=True
    )
    said: list[str] = []
    with stream, pytest.raises(openai.APIConnectionError):
        said.extend(chunk.choices[0].delta.content or "" for chunk in _endless(stream))
    assert lab.calls[0].tokens == min(after, 40)


def _endless(stream: Any) -> Any:
    for chunk in stream:
        assert chunk.choices[0].finish_reason is None
        yield chunk


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("after", "tokens"), [(5, 5), (-1, 40)])
def test_a_stream_that_ends_without_saying_so(lab: Lab, asker: Asker, wire: str, after: int, tokens: int) -> None:
    """A clean end without the terminal event raises nothing and has no stop reason."""
    lab.use([{"fault": "no_end", "after": after}])
    seen = asker.ask(wire, True)
    assert (seen.text, seen.stop) == (words(tokens), None)


def test_what_needs_a_stream_leaves_others_alone(lab: Lab, asker: Asker) -> None:
    """A fault that needs a stream is not used up by an unstreamed request."""
    lab.use([{"fault": "no_end", "times": 1}])
    assert asker.ask("chat", False).text == words(40)
    assert asker.ask("chat", True).stop is None


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_inside_a_stream(lab: Lab, asker: Asker, wire: str) -> None:
    """After five tokens, the provider's error event makes the SDK raise an error."""
    lab.use(["stream_error"])
    error: Any = raised(asker, wire, True)
    if wire == "messages":
        assert type(error) is anthropic.APIStatusError
        body: Any = error.body
        assert (error.status_code, body["error"]["type"]) == (200, "overloaded_error")
    elif wire == "gemini":
        assert (type(error), error.code, error.status) == (errors.ServerError, 503, "UNAVAILABLE")
    else:
        assert type(error) is openai.APIError
    assert rung.classify(error).kind is rung.Kind.OVERLOADED
    assert (lab.calls[0].status, lab.calls[0].tokens) == (200, 5)


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_as_the_whole_of_a_good_answer(lab: Lab, asker: Asker, wire: str) -> None:
    """An error body with status 200 raises nothing and has no content."""
    lab.use(["stream_error"])
    paths = {"messages": "messages", "chat": "chat/completions", "responses": "responses"}
    paths["gemini"] = "models/m:generateContent"
    given: Any = {"model": "m", "max_tokens": 9, "input": "x", "messages": [{"role": "user", "content": "x"}]}
    given = {"contents": [{"parts": [{"text": "x"}]}]} if wire == "gemini" else given
    answer = httpx2.post(f"{lab.url}/v1/{paths[wire]}", json=given)
    assert (answer.status_code, "overloaded" in answer.json()["error"]["message"].lower()) == (200, True)


@EACH
def test_json_that_breaks_off(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """The transfer is complete, but the JSON is truncated."""
    lab.use(["truncated_json"])
    assert isinstance(raised(asker, wire, stream), ValueError)


@EACH
def test_a_page_instead_of_an_answer(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """No SDK can use an HTML page with status 200."""
    lab.use(["wrong_type"])
    if wire == "gemini":
        assert isinstance(raised(asker, wire, stream), ValueError)
    elif stream and wire != "messages":
        assert asker.ask(wire, stream).text == ""
    else:
        assert isinstance(raised(asker, wire, stream), (AttributeError, AssertionError))


@EACH
def test_an_empty_answer(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """An empty answer ends normally without text."""
    lab.use(["empty"])
    seen = asker.ask(wire, stream)
    assert (seen.text, seen.calls) == ("", [])
    assert seen.stop in {"end_turn", "stop", "completed", "STOP"}


@EACH
def test_an_answer_cut_off_at_its_limit(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """The answer has fewer tokens than allowed and the stop reason of the limit; the next one is complete."""
    lab.use([{"fault": "max_tokens", "after": 9, "times": 1}])
    seen = asker.ask(wire, stream)
    assert (seen.text, seen.stop) == (
        words(9),
        {"messages": "max_tokens", "chat": "length", "responses": "max_output_tokens", "gemini": "MAX_TOKENS"}[wire],
    )
    assert asker.ask(wire, stream).text == words(40)


@EACH
def test_a_refusal(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """A refusal is Anthropic's stop reason, Google's finish reason, or OpenAI's refusal text."""
    lab.use(["refusal"])
    seen = asker.ask(wire, stream)
    if wire in {"messages", "gemini"}:
        assert (seen.stop, seen.text) == ("refusal" if wire == "messages" else "SAFETY", "")
    else:
        assert seen.text == "I can't help with that request."


@EACH
def test_the_same_tool_call_again(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """Each call has the same name and arguments, and its own id."""
    lab.use(["loop"])
    first, again = asker.ask(wire, stream, tools=True), asker.ask(wire, stream, tools=True)
    assert first.calls == again.calls != []
    assert first.id != again.id


@EACH
def test_arguments_that_are_none(lab: Lab, asker: Asker, wire: str, stream: bool) -> None:
    """Arguments are invalid JSON, or lack required fields where the API cannot carry invalid JSON."""
    import json

    lab.use(["bad_arguments"])
    name, given = asker.ask(wire, stream, tools=True).calls[0]
    assert name == "read"
    if wire in {"messages", "gemini"}:
        assert "lines" not in json.loads(given)
    else:
        with pytest.raises(ValueError):
            json.loads(given)


def test_too_much_for_the_window_of_gemini(lab: Lab, asker: Asker) -> None:
    """Google counts the input only; the error has both numbers."""
    lab.use(window=600)
    long = [{"role": "user", "content": "x " * 2_000}]
    failure = rung.classify(raised(asker, "gemini", True, messages=long, max_tokens=100))
    assert failure.kind is rung.Kind.CONTEXT_LIMIT
    assert failure.tokens is not None
    assert (failure.tokens.limit, failure.tokens.asked > 1_000) == (600, True)
    short = [{"role": "user", "content": "x " * 500}]
    assert asker.ask("gemini", True, short, max_tokens=500).text == words(40)


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_too_much_for_the_window(lab: Lab, asker: Asker, wire: str) -> None:
    """Request tokens are counted; the error has both numbers, and a smaller request fits."""
    lab.use(window=600)
    long = [{"role": "user", "content": "x " * 2_000}]
    failure = rung.classify(raised(asker, wire, True, messages=long, max_tokens=100))
    assert failure.kind is rung.Kind.CONTEXT_LIMIT
    assert failure.tokens is not None
    assert failure.tokens.limit == 600
    assert failure.tokens.asked > 1_000
    short = [{"role": "user", "content": "x " * 500}]
    failure = rung.classify(raised(asker, wire, True, messages=short, max_tokens=500))
    assert failure.kind is rung.Kind.CONTEXT_LIMIT
    assert asker.ask(wire, True, short, max_tokens=100).text == words(40)


def test_an_overflow_that_nobody_gave_a_window(lab: Lab, asker: Asker) -> None:
    """By default, three quarters of the first request fit from then on."""
    lab.use(["overflow"])
    for length in (1_000, 1_000, 900):
        raised(asker, "messages", False, messages=[{"role": "user", "content": "x" * length}])
    assert asker.ask("messages", False, [{"role": "user", "content": "x" * 700}]).text == words(40)
    assert [call.fault for call in lab.calls] == ["overflow", "overflow", "overflow", ""]
