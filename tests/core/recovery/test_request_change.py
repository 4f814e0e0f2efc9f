"""Changes of a request, relative to the request of the caller."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.request import Request
from rung.core.recovery.request_change import apply_change, describe_change

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
OTHER = "ghp_" + "z9Y8x7W6v5" * 3 + "u4T3s2"

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.binary(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
requests = st.builds(
    Request,
    prompt=st.text(max_size=60),
    messages=st.lists(st.dictionaries(st.text(max_size=8), values, max_size=2), max_size=3).map(tuple),
    model=st.sampled_from(["", "small", "large"]),
    max_tokens=st.none() | st.integers(1, 100),
    params=st.dictionaries(st.text(max_size=8), values, max_size=3),
    recovery=st.text(max_size=20),
)


def through_json(change: dict[str, Any]) -> dict[str, Any]:
    """The change as another process reads it."""
    read: dict[str, Any] = json.loads(json.dumps(change))
    return read


@given(requests, requests)
def test_a_change_leads_to_the_changed_request(base: Request, changed: Request) -> None:
    """Applied to the same request, a recorded change gives the changed request again."""
    again = apply_change(base, through_json(describe_change(base, changed)))
    assert repr(again) == repr(changed.replace(params=dict(again.params))) or again.digest() == changed.digest()


@given(requests, st.text(max_size=40))
def test_what_the_caller_passes_is_not_copied(base: Request, text: str) -> None:
    """A rung that keeps the messages and adds a text records the text alone."""
    changed = base.replace(messages=(*base.messages, {"role": "user", "content": text}))
    change = through_json(describe_change(base, changed))
    assert apply_change(base, change).digest() == changed.digest()
    assert list(change["fields"]) == ["messages"]


def test_no_secret_of_the_caller_is_recorded() -> None:
    """A token of the caller, and the text around it, are references; the caller's next token takes its place."""
    base = Request(prompt=f"Deploy with {TOKEN} to the cluster.", params={"api_key": "abcd1234efgh", "n": 1})
    plan = f"The task:\n{base.prompt}\nFirst log in as {TOKEN}; the key is abcd1234efgh."
    changed = base.replace(prompt=plan, params={**base.params, "plan": plan})
    change = through_json(describe_change(base, changed))
    assert TOKEN not in str(change)
    assert "abcd1234efgh" not in str(change)
    assert apply_change(base, change) == changed
    later = base.replace(prompt=base.prompt.replace(TOKEN, OTHER))
    assert apply_change(later, change).prompt == plan.replace(TOKEN, OTHER)


def test_long_texts_are_not_recorded_again() -> None:
    """A prompt of 100,000 characters is one reference in the change."""
    base = Request(prompt="word " * 20_000)
    changed = base.replace(prompt=f"Try again.\n{base.prompt}")
    change = through_json(describe_change(base, changed))
    assert len(str(change)) < 300
    assert apply_change(base, change) == changed


def test_objects_of_the_caller() -> None:
    """An object of the caller is passed on as it is; a new object cannot be recorded."""
    client = object()
    base = Request(prompt="p", params={"client": client})
    kept = base.replace(params={**base.params, "kept": "x"})
    again = apply_change(base, through_json(describe_change(base, kept)))
    assert again.params["client"] is client
    with pytest.raises(TypeError, match=r"params\.other is a object"):
        describe_change(base, base.replace(params={"other": object()}))


def test_another_request() -> None:
    """A request without what the change refers to is refused."""
    message = {"role": "user", "content": "a text that is long enough to be shared"}
    base = Request(messages=(message,), params={"token": "abcd1234efgh"})
    change = through_json(describe_change(base, base.replace(messages=(message, message), recovery="use abcd1234efgh")))
    with pytest.raises(LookupError, match=r"has no messages\.0"):
        apply_change(Request(params=base.params), change)
    with pytest.raises(LookupError, match="one more is needed"):
        apply_change(Request(messages=(message,)), change)


def test_a_damaged_change() -> None:
    """A change that leads elsewhere from the same request is refused."""
    base = Request(prompt="p")
    change = describe_change(base, base.replace(prompt="q"))
    with pytest.raises(LookupError, match="does not lead"):
        apply_change(base, {**change, "fields": {"prompt": "r"}})
