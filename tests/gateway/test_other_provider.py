"""Another provider for the same conversation: an upstream of another wire serves the client, and continues its stream."""

from __future__ import annotations

import json
from ast import literal_eval
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import openai
import pytest

from rung.testing.provider import Lab
from tests.gateway.behind import ALL_WIRES, ASK, TOOL, WHOLE, Behind, Got, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "key-of-the-other-provider"
# Wire of the other upstream: its API and the formats that it speaks.
OTHERS: dict[str, dict[str, Any]] = {
    "messages": {"wire": "anthropic"},
    "chat": {"wire": "openai", "apis": ["chat"]},
    "responses": {"wire": "openai", "apis": ["responses"]},
    "gemini": {"type": "gemini"},
}
OWN = {"messages": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gemini"}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses", "gemini": ":"}
EACH_PAIR = pytest.mark.parametrize(
    ("wire", "other"), [(wire, other) for wire in ALL_WIRES for other in OTHERS if wire != other]
)
EACH_WAY = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", KEY)


@contextmanager
def beside(
    wire: str,
    other: str,
    script: Any = None,
    *,
    alone: bool = False,
    answers: dict[str, Any] | None = None,
    **more: Any,
) -> Iterator[tuple[Behind, Lab]]:
    """Run a gateway before the client's own provider, and another provider with another wire.

    `alone`: there is no upstream with the client's API. `answers` are settings of both labs.
    """
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(**(answers or {})))
        second = {**OTHERS[other], "url": lab.url, "key_env": "OTHER_KEY"}
        policy = {"models": ["other/large"] if alone else ["small", "other/large"], **more.pop("policy", {})}
        apis = () if alone else (OWN[wire],)
        behind = Behind(script, policy=policy, apis=apis, upstreams={"other": second}, **(answers or {}), **more)
        yield stack.enter_context(behind), lab


@EACH_WAY
@EACH_PAIR
def test_only_the_other_provider(wire: str, other: str, stream: bool) -> None:
    """A client whose own provider is not configured is served by a provider of another wire, with the gateway's key."""
    with beside(wire, other, alone=True) as (behind, lab):
        got = ask(behind, wire, stream=stream)
        assert got.text == WHOLE
        assert got.usage == 40
        assert PATHS[other] in lab.calls[0].path
        is_same_api = OTHERS[other].get("wire") == OWN[wire]  # a server that has one of OpenAI's two APIs
        name = lab.calls[0].path if other == "gemini" else lab.calls[0].json["model"]
        assert ("small" if is_same_api else "large") in name
        sent = str(lab.calls[0].headers)
        assert KEY in sent
        assert "sk-" not in sent


@EACH_WAY
@EACH_PAIR
@pytest.mark.parametrize("fault", ["overloaded", "quota", "unauthorized", "model_gone"])
def test_the_other_provider_takes_over(fault: str, wire: str, other: str, stream: bool) -> None:
    """If the own provider is overloaded, out of quota or refuses the key, the other one answers within one request."""
    with beside(wire, other, [{"fault": fault}]) as (behind, lab):
        got = ask(behind, wire, stream=stream)
        assert got.text == WHOLE
        assert lab.attempts == 1


@EACH_PAIR
@pytest.mark.parametrize("fault", ["cut", "stream_error", "no_end"])
def test_a_broken_stream_goes_on_elsewhere(fault: str, wire: str, other: str) -> None:
    """A stream that breaks in mid-answer is continued by the other provider: nothing is lost, nothing comes twice."""
    rule = {"fault": fault, "after": 17}
    with beside(wire, other, [rule], policy={"retries": 1}) as (behind, lab):
        got = ask(behind, wire, stream=True)
        assert got.text == WHOLE
        assert lab.attempts >= 1


@EACH_PAIR
@pytest.mark.parametrize("fault", ["cut", "stream_error"])
def test_a_broken_stream_of_the_other_provider_goes_on(fault: str, wire: str, other: str) -> None:
    """A translated stream that breaks is continued as well."""
    with beside(wire, other, alone=True) as (behind, lab):
        lab.use([{"fault": fault, "after": 17, "request": 1}])
        assert ask(behind, wire, stream=True).text == WHOLE
        assert lab.attempts == 2


@EACH_WAY
@EACH_PAIR
@pytest.mark.parametrize("fault", ["", "overloaded", "cut"])
def test_tool_calls_are_exact(fault: str, wire: str, other: str, stream: bool) -> None:
    """One complete tool call with exact arguments, also if the own provider breaks off inside of it."""
    script = [{"fault": fault, **({"after": 1} if fault == "cut" else {})}] if fault else None
    with beside(wire, other, script, alone=not fault, answers={"calls": 1}) as (behind, lab):
        got = ask(behind, wire, stream=stream, tools=True)
        assert len(got.calls) == 1
        assert set(_arguments(got)) == set(TOOL["input_schema"]["required"])
        assert got.stop in ("tool_use", "tool_calls", "completed", "stop")
        is_settled = wire == "gemini" and stream and fault == "cut"  # its calls come whole: nothing is left to ask for
        assert lab.attempts >= 1 or is_settled


def _arguments(got: Got) -> dict[str, Any]:
    text = got.calls[0]
    return dict(json.loads(text)) if text.startswith('{"') else dict(literal_eval(text))


def test_dropped_fields_are_named() -> None:
    """What the other wire cannot say is named in a header."""
    with beside("messages", "chat", alone=True) as (behind, _):
        response = behind.claude().messages.with_raw_response.create(
            model="small", max_tokens=1_000, messages=ASK, extra_body={"top_k": 5}
        )
        assert "top_k" in response.headers["x-rung-dropped"]


def test_an_error_of_the_other_provider_is_in_the_clients_format() -> None:
    """A client gets an error that its SDK reads, whatever API the failing provider has."""
    with beside("chat", "messages", alone=True) as (behind, lab):
        lab.use([{"fault": "bad_request"}])
        with pytest.raises(openai.BadRequestError) as error:
            ask(behind, "chat", stream=False)
        assert error.value.body is not None


def test_a_model_is_never_sent_to_an_upstream_that_lacks_it() -> None:
    """A model list that mixes wires sends each model to its own upstream, under its own name."""
    with beside("messages", "chat", [{"fault": "overloaded"}]) as (behind, lab):
        ask(behind, "messages", stream=False)
        assert {call.json["model"] for call in behind.lab.calls} == {"small"}
        assert {call.json["model"] for call in lab.calls} == {"large"}


def test_an_alias_stands_for_a_model() -> None:
    """A client's name for a model may stand for a model of another provider, for one project or for all."""
    aliases = [{"name": "small", "model": "other/large", "project": "shop"}]
    with beside("messages", "chat", aliases=aliases) as (behind, lab):
        ask(behind, "messages", stream=False)
        assert (behind.attempts, lab.attempts) == (1, 0)
        ask(behind, "messages", stream=False, extra_headers={"x-rung-project": "shop"})
        assert (behind.attempts, lab.attempts) == (1, 1)
        assert lab.calls[0].json["model"] == "large"


def test_without_a_key_of_its_own_no_other_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's key never goes to another provider."""
    with beside("chat", "messages", [{"fault": "overloaded"}]) as (behind, lab):
        monkeypatch.delenv("OTHER_KEY")
        with pytest.raises(openai.InternalServerError):
            ask(behind, "chat", stream=False)
        assert lab.attempts == 0


def test_history_at_the_provider_stays_there() -> None:
    """A request that refers to a response which only its provider has is not sent elsewhere."""
    with beside("responses", "messages", [{"fault": "overloaded"}]) as (behind, lab):
        with pytest.raises(openai.APIStatusError):
            behind.gpt().responses.create(model="small", input="go on", previous_response_id="resp_unknown")
        assert lab.attempts == 0


def test_the_output_limit_fits_the_other_model() -> None:
    """A limit above the other model's maximum is lowered to it, because its provider would reject the request."""
    models = ["small", {"name": "other/large", "max_tokens": 2_000}]
    with beside("messages", "chat", [{"fault": "overloaded"}], policy={"models": models}) as (behind, lab):
        ask(behind, "messages", stream=False)
        assert lab.calls[0].json["max_tokens"] == 2_000


def test_a_smaller_window_is_compacted_for() -> None:
    """A history that does not fit into the other model's window is compacted before it is sent there."""
    models = ["small", {"name": "other/large", "window": 8_000, "max_tokens": 2_000}]
    turns = [{"role": role, "content": f"{n} {'word ' * 1_000}"} for n in range(12) for role in ("user", "assistant")]
    with beside("messages", "chat", [{"fault": "overloaded"}], policy={"models": models}) as (behind, lab):
        got = ask(behind, "messages", stream=False, messages=[*turns, *ASK])
        assert got.text == WHOLE
        assert len(str(lab.calls[0].json["messages"])) < 4 * 8_000
        assert "count to 40" in str(lab.calls[0].json["messages"][-1])


def test_what_an_answer_loses_is_named_too() -> None:
    """Reasoning of the other provider is left out of the answer, and named."""
    with beside("chat", "messages", alone=True, answers={"thinking": 5}) as (behind, _):
        response = behind.gpt().chat.completions.with_raw_response.create(
            model="small", messages=ASK, reasoning_effort="high"
        )
        assert response.parse().choices[0].message.content == WHOLE
        assert "reasoning" in response.headers["x-rung-dropped"]
        assert response.headers["x-rung-upstream"] == "other/large"
