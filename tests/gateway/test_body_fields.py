"""Fields that are read from both ends of a body are those of the parsed body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.gateway.admission.body_fields import BodyFields, scan_fields

KEYS = st.sampled_from(["model", "stream", "messages", "a", '"model"', "x,", ""]) | st.text(max_size=5)
TEXTS = st.sampled_from(['"model": "b"', ',"model":"b"}', "\\", '\\",', "}", '","stream":true}']) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(KEYS, VALUES, max_size=6)


@given(BODIES, st.sampled_from([None, 1]), st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]))
def test_whatever_a_body_holds(body: dict[str, Any], indent: int | None, ascii_only: bool, marks: Any) -> None:
    """Fields that are found without parsing are equal to the parsed ones."""
    text = json.dumps(body, indent=indent, ensure_ascii=ascii_only, separators=marks)
    found = scan_fields(text.encode("utf-8", "surrogatepass"))
    if found is not None:
        assert found == BodyFields(body["model"], body.get("stream") is True)


LONG = [{"role": "user", "content": "x" * 5_000, "input": {"model": "nested", "stream": True}}]


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "max_tokens": 5, "messages": LONG, "stream": True},
        {"max_tokens": 5, "messages": LONG, "model": "m", "stream": True},
        {"model": "m", "stream": True, "messages": LONG},
        {"messages": LONG, "stream": True, "temperature": -1.5e-3, "stop": None, "model": "m"},
    ],
)
def test_bodies_that_need_no_parsing(body: dict[str, Any]) -> None:
    """Fields before the first or after the last nested value are found without parsing."""
    assert scan_fields(json.dumps(body).encode()) == BodyFields("m", True)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[1]", b'{"messages":[{"model":"m"}]}', b'{"model":"m","messages":[{"stream":true}]}', b'{"a":1}'],
)
def test_bodies_that_must_be_parsed(body: bytes) -> None:
    """A field that neither end shows is not guessed."""
    assert scan_fields(body) is None
