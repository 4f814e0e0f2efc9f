"""Bodies of Gemini's API: histories survive their form as messages, and are repaired and compacted like those of others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rung.core.conversation.compaction import compact_messages
from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.core.domain.failures import Kind
from rung.wires import gemini_body
from rung.wires.gemini_body import SKIPPED_SIGNATURE
from rung.wires.gemini_messages import to_contents, to_messages

TEXTS = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=2)
SIGNATURES = st.sampled_from([{}, {"thoughtSignature": "c2ln"}])
NAMES = st.sampled_from(["look", "ask"])


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """A part of a content, as the SDK writes it."""
    kind = draw(st.sampled_from(["text", "thought", "call", "file", "code"]))
    if kind == "text":
        return {"text": draw(TEXTS), **draw(SIGNATURES)}
    if kind == "thought":
        return {"text": draw(TEXTS), "thought": True}
    if kind == "call":
        return {"functionCall": {"name": draw(NAMES), "args": draw(OBJECTS)}, **draw(SIGNATURES)}
    if kind == "file":
        return {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    return {"executableCode": {"code": "1", "language": "PYTHON"}}


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation in which each call has its response."""
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": draw(TEXTS)}]}]
    for spoken in draw(st.lists(st.lists(parts(), min_size=1, max_size=3), max_size=3)):
        contents.append({"role": "model", "parts": spoken})
        calls = [part["functionCall"] for part in spoken if "functionCall" in part]
        for number, called in enumerate(calls):
            called.update({"id": f"{len(contents)}-{number}"} if draw(st.booleans()) else {})
        answers: list[dict[str, Any]] = [
            {
                "functionResponse": {
                    **{key: call[key] for key in ("id", "name") if key in call},
                    "response": draw(OBJECTS),
                }
            }
            for call in calls
        ]
        contents.append({"role": "user", "parts": answers or [{"text": draw(TEXTS)}]})
    return contents


NAMELESS = [
    {"role": "user", "parts": [{"text": "a"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"": ""}}}]},
]


@given(turns())
@example(NAMELESS)
def test_contents_survive_their_form_as_messages(contents: list[dict[str, Any]]) -> None:
    """A history that is read as messages and written again is the same, with and without ids of calls."""
    assert to_contents(to_messages(contents)) == contents


@given(turns(), st.data())
def test_a_repaired_history_has_a_response_for_each_call(contents: list[dict[str, Any]], data: st.DataObject) -> None:
    """However many contents are lost, each call has its response in the next content, and no response is alone."""
    left = [content for content in contents if data.draw(st.booleans())]
    repaired = gemini_body.with_repaired_history({"contents": left})["contents"]
    for at, content in enumerate(repaired):
        called = sorted(part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part)
        after = repaired[at + 1]["parts"] if at + 1 < len(repaired) else []
        if called:
            assert called == sorted(part["functionResponse"]["name"] for part in after if "functionResponse" in part)
        if any("functionResponse" in part for part in content["parts"]):
            assert any("functionCall" in part for part in repaired[at - 1]["parts"])


def call(name: str = "look", **more: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {"at": "x"}}, **more}]}


def result(text: str = "seen", name: str = "look") -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": text}}}]}


ASK: dict[str, Any] = {"role": "user", "parts": [{"text": "look around"}]}


def test_a_lost_response_is_replaced_by_an_error() -> None:
    """A call without a response gets one that says so, under the name of its function."""
    changed = gemini_body.with_repaired_history({"contents": [ASK, call(), ASK]})
    stub = {"functionResponse": {"name": "look", "response": {"error": MISSING_RESULT_TEXT}}}
    assert changed["contents"][2]["parts"] == [stub]


def test_another_model_gets_no_thoughts() -> None:
    """Thoughts and signatures belong to one model; Gemini 3 gets the signature that stands for those of others."""
    thought = {"role": "model", "parts": [{"text": "hm", "thought": True}]}
    body = {"contents": [ASK, thought, ASK, call(thoughtSignature="c2ln"), result()]}
    older = gemini_body.with_model(body, "gemini-2.5-flash")["contents"]
    newer = gemini_body.with_model(body, "gemini-3-pro-preview")["contents"]
    assert older[1]["parts"] == newer[1]["parts"] == [{"text": "…"}]
    assert older[3] == call()
    assert newer[3] == call(thoughtSignature=SKIPPED_SIGNATURE)
    assert gemini_body.with_repaired_history(body)["contents"][3] == call(thoughtSignature=SKIPPED_SIGNATURE)


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("gemini-3-flash", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-2.5-flash", {"includeThoughts": True}),
        ("gemini-2.0-flash", None),
    ],
)
def test_settings_of_thinking_follow_the_model(model: str, thinking: object) -> None:
    """A model gets no settings of thinking that it would reject."""
    config = {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}, "temperature": 1}
    changed = gemini_body.with_model({"contents": [ASK], "generationConfig": config}, model)["generationConfig"]
    assert changed == {"temperature": 1} | ({"thinkingConfig": thinking} if thinking else {})


@pytest.mark.parametrize(
    "body",
    [{"generationConfig": {"maxOutputTokens": 7}}, {"generation_config": {"max_output_tokens": 7}}],
)
def test_both_spellings(body: dict[str, Any]) -> None:
    """The limit is read and changed in the spelling of the request: the API accepts camelCase and snake_case."""
    assert gemini_body.limit(body) == 7
    changed = gemini_body.with_limit(body, 9)
    assert (changed.keys(), gemini_body.limit(changed)) == (body.keys(), 9)


def test_a_history_is_compacted() -> None:
    """Old responses of functions are shortened, and stay paired with their calls."""
    contents = [ASK]
    for number in range(12):
        contents += [call(), result(f"{number} " * 600)]
    body = {"contents": contents}
    small = gemini_body.with_history(body, compact_messages(gemini_body.history(body), 12_000))
    kinds = [next(iter(content["parts"][0])) for content in small["contents"]]
    assert len(str(small)) < 13_000
    assert kinds.count("functionCall") == kinds.count("functionResponse") > 0
    assert small["contents"][-1] == contents[-1]


def test_functions_have_schemas_of_either_kind() -> None:
    """Required arguments are known from the schema of the API and from JSON Schema."""
    declared = [
        {"name": "a", "parameters": {"type": "OBJECT", "required": ["x"]}},
        {"name": "b", "parametersJsonSchema": {"type": "object", "required": ["y"]}},
    ]
    schemas = gemini_body.tool_schemas({"tools": [{"googleSearch": {}}, {"functionDeclarations": declared}]})
    assert {name: schema["required"] for name, schema in schemas.items()} == {"a": ["x"], "b": ["y"]}


def answer(*spoken: dict[str, Any], reason: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(spoken)}, **({"finishReason": reason} if reason else {})}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}, **more}


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (answer({"text": "hi"}), None),
        (answer({"functionCall": {"name": "look"}}), None),
        (answer({"text": "hi"}, reason="OTHER"), None),
        (answer({"text": "hm", "thought": True}), Kind.PARTIAL_OUTPUT),
        (answer(), Kind.PARTIAL_OUTPUT),
        (answer({"functionCall": {"name": "look", "args": 7}}), Kind.MALFORMED_OUTPUT),
        (answer(reason="MALFORMED_FUNCTION_CALL"), Kind.MALFORMED_OUTPUT),
        (answer({"text": "hi"}, reason=None), Kind.STREAM_INTERRUPTED),
        (answer({"text": "hi"}, reason="FINISH_REASON_UNSPECIFIED"), Kind.STREAM_INTERRUPTED),
        ({"candidates": []}, Kind.STREAM_INTERRUPTED),
        ({"promptFeedback": {"blockReason": "OTHER"}}, Kind.CONTENT_FILTER),
    ],
)
def test_what_is_wrong_with_an_answer(response: dict[str, Any], kind: Kind | None) -> None:
    """An answer must have ended by itself, with output; a blocked prompt is a filter, whatever its reason is called."""
    found = gemini_body.validate(response)
    assert (None if found is None else found.finding) == kind


def test_a_limit_and_a_filter_have_their_codes() -> None:
    """The names of Gemini's finish reasons are read like those of other APIs."""
    for reason in ("MAX_TOKENS", "SAFETY"):
        found = gemini_body.validate(answer({"text": "hi"}, reason=reason))
        assert found is not None
        assert found.code == reason


def test_answers_are_merged() -> None:
    """A continuation goes on in the last text, without what it repeats; usage is added, thoughts are left out."""
    first = answer({"text": "one two three four"}, reason="MAX_TOKENS")
    second = answer(
        {"text": "hm", "thought": True}, {"text": "two three four five"}, {"functionCall": {"name": "look"}}
    )
    merged = gemini_body.merge([first, second])
    assert gemini_body.text_of(merged) == "one two three four five"
    assert gemini_body.tool_calls(merged) == [("look", {})]
    assert merged["usageMetadata"] == {"promptTokenCount": 6, "candidatesTokenCount": 4}
    assert gemini_body.validate(merged) is None


def test_a_single_part_survives_a_repair() -> None:
    """A part without a list around it, which Google accepts, stays in a history that is repaired for another model."""
    repaired = gemini_body.with_model({"contents": {"role": "user", "parts": {"text": "hello"}}}, "other")
    assert repaired["contents"] == [{"role": "user", "parts": [{"text": "hello"}]}]
