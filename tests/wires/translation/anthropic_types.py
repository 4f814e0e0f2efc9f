"""Hypothesis strategies for Anthropic's request bodies, made from the types of its SDK: every field that they have."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from anthropic._types import SequenceNotStr
from hypothesis import strategies as st

TEXTS = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
JSON_OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(0, 2**63),
    float: st.floats(0, 2),
    bool: st.booleans(),
    type(None): st.none(),
    object: JSON,
}
_REQUIRED = (typing.Required, typing_extensions.Required)
_LISTS = (Iterable, Sequence, SequenceNotStr, list)


@st.composite
def values_of(draw: st.DrawFn, kind: Any) -> Any:
    """Return JSON values of a type of the SDK."""
    return _drawn(draw, kind)


def _drawn(draw: st.DrawFn, kind: Any) -> Any:
    if kind in _PLAIN:
        return draw(_PLAIN[kind])
    if typing_extensions.is_typeddict(kind):
        return _drawn_object(draw, kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return draw(st.sampled_from(arguments))
    if origin is Annotated:
        return _drawn(draw, arguments[0])
    if origin in (Union, types.UnionType):
        return _drawn(draw, draw(st.sampled_from([each for each in arguments if _is_json(each)])))
    if origin in _LISTS:
        return [_drawn(draw, arguments[0]) for _ in range(draw(st.integers(0, 3)))]
    if origin is dict:
        return draw(JSON_OBJECTS)
    raise TypeError(f"no values for {kind}")


def _is_json(kind: Any) -> bool:
    """Whether a type is one of JSON. Clients may also give open files, and objects that they got as answers."""
    if get_origin(kind) in (Annotated, Union):
        return all(_is_json(each) for each in get_args(kind)[: 1 if get_origin(kind) is Annotated else None])
    return get_origin(kind) in (Literal, dict, *_LISTS) or typing_extensions.is_typeddict(kind) or kind in _PLAIN


def _drawn_object(draw: st.DrawFn, kind: Any) -> dict[str, Any]:
    found = {}
    for name, hint in typing_extensions.get_type_hints(kind, include_extras=True).items():
        qualifier: Any = get_origin(hint)
        is_required = qualifier in _REQUIRED
        if is_required or draw(st.booleans()):
            found[name] = _drawn(draw, get_args(hint)[0] if is_required else hint)
    return found


def members_of(*unions: Any) -> list[Any]:
    """Return the types of objects that unions of the SDK have."""
    found = [each for union in unions for each in get_args(union) if typing_extensions.is_typeddict(each)]
    return list(dict.fromkeys(found))
