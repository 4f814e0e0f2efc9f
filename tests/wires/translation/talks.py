"""Hypothesis strategies for good conversations, which a client module puts into its wire."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.gateway.cross_wire.contents import OTHER_PNG, PDF, PNG, SCHEMA, URL
from tests.gateway.cross_wire.talk import (
    Call,
    Image,
    ModelTurn,
    Pdf,
    Result,
    ResultTurn,
    Talk,
    TalkTurn,
    UserTurn,
)

WORDS = st.text('abcäß🙂 "\\\n<&', min_size=1, max_size=12).filter(lambda text: text == text.strip() != "")
NAMES = ("look", "list_all", "find-in_Files2")
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(WORDS, part, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(WORDS, JSON, max_size=3)
MEDIA: st.SearchStrategy[Any] = st.sampled_from([Image(data=PNG), Image(data=OTHER_PNG), Image(url=URL), Pdf(PDF)])
RESULT_MEDIA: st.SearchStrategy[Any] = st.sampled_from([Image(data=PNG), Image(url=URL)])


@st.composite
def turns(draw: st.DrawFn) -> tuple[TalkTurn, ...]:
    """Turns that alternate, with results of all calls."""
    found: list[TalkTurn] = []
    for step in range(draw(st.integers(0, 4))):
        found.append(UserTurn(tuple(draw(st.lists(MEDIA | WORDS, min_size=1, max_size=3)))))
        for round_ in range(draw(st.integers(0, 2))):
            names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
            calls = tuple(Call(f"call_{step}_{round_}_{n}", name, draw(ARGUMENTS)) for n, name in enumerate(names))
            results = tuple(
                Result(call.id, call.name, (draw(WORDS), *draw(st.lists(RESULT_MEDIA, max_size=1)))) for call in calls
            )
            found += [ModelTurn(draw(st.just("") | WORDS), calls), ResultTurn(results)]
        found.append(ModelTurn(draw(WORDS)))
    return (*found, UserTurn((draw(WORDS),)))


SCHEMAS = st.just({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]})
TALKS = st.builds(
    Talk,
    turns=turns(),
    system=st.just("") | WORDS,
    tools=SCHEMAS.map(lambda schema: tuple((name, schema) for name in NAMES)),
    schema=st.sampled_from([None, SCHEMA]),
    stop=st.sampled_from([(), ("END",), ("a", "b")]),
    max_tokens=st.integers(16, 8_000),
)
