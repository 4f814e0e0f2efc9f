"""Every Chat Completions request that the types of the openai SDK allow, with fields that compatible servers add."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

Strategy = st.SearchStrategy[Any]

TEXTS = st.text(max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2), max_leaves=4
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
URLS = st.sampled_from(
    [
        "https://example.test/a.png",
        "data:image/png;base64,AAAA",
        "data:image/svg+xml;base64,AA==",
        "data:text/plain,a",
        "",
    ]
)
FILES = st.sampled_from(
    ["data:application/pdf;base64,AAAA", "AAAA", "https://example.test/a.pdf", "data:;base64,AA", ""]
)
SPECIAL = {"url": URLS, "file_data": FILES, "filename": st.sampled_from(["a.pdf", "a.txt", ""])}
# Fields of OpenRouter, DeepSeek, LiteLLM, vLLM and Gemini's endpoint.
VENDOR: dict[str, dict[str, Strategy]] = {
    "ChatCompletionAssistantMessageParam": {
        "reasoning_content": TEXTS | st.none(),
        "reasoning": TEXTS,
        "reasoning_details": st.lists(OBJECTS, max_size=2),
        "annotations": st.just([]),
    },
    "ChatCompletionContentPartTextParam": {"cache_control": OBJECTS | st.none()},
    "ChatCompletionToolMessageParam": {"name": TEXTS, "cache_control": OBJECTS},
    "ChatCompletionFunctionToolParam": {"cache_control": OBJECTS},
    "ChatCompletionMessageFunctionToolCallParam": {"extra_content": OBJECTS, "index": st.integers(0, 3)},
    "CompletionCreateParamsNonStreaming": {
        "stream": st.booleans() | st.none(),
        "top_k": st.integers(1, 9),
        "reasoning": st.fixed_dictionaries({}, optional={"effort": TEXTS, "max_tokens": st.integers(1, 9)}),
        "extra": JSON,
    },
}


@cache
def of_type(hint: Any) -> Strategy:
    """The values of a type, as JSON."""
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(hint, "__required_keys__"):  # a TypedDict, of whichever module
        return st.deferred(lambda: _object(hint))
    if origin in (Required, NotRequired):
        return of_type(inner[0])
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(choice) for choice in inner])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return st.dictionaries(TEXTS, of_type(inner[1]), max_size=2)
    if isinstance(origin, type) and issubclass(origin, Iterable | Sequence):
        return st.lists(of_type(inner[0]), max_size=3)
    if hasattr(hint, "__protocol_attrs__") or getattr(origin, "__name__", "") == "SequenceNotStr":
        return st.lists(of_type(inner[0]) if inner else TEXTS, max_size=3)
    scalars: dict[Any, Strategy] = {
        str: TEXTS,
        int: st.integers(-9, 99),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
        object: JSON,
    }
    return scalars[hint]


def _object(hint: Any) -> Strategy:
    hints = get_type_hints(hint, include_extras=True)
    fields = {name: SPECIAL[name] if name in SPECIAL else of_type(value) for name, value in hints.items()}
    required = {name: fields[name] for name, value in hints.items() if get_origin(value) is Required}
    optional = {name: field for name, field in fields.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional | VENDOR.get(hint.__name__, {}))


BODIES = of_type(CompletionCreateParamsNonStreaming)
