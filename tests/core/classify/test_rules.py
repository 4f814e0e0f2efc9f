"""The rule index finds what trying every rule in order finds; user rules; descriptions of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.core.classify.classifier import RULES, classify, rules, use_rules
from rung.core.classify.phrases import parse_phrases
from rung.core.classify.read_facts import read_facts
from rung.core.classify.rule_index import SIGNS, ClassifyRule, RuleIndex, describe_conditions
from rung.core.classify.statements import Occurrences, parse_statement
from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.classify.facts import Facts


@pytest.fixture(autouse=True)
def _ours_again() -> Iterator[None]:
    yield
    use_rules()


def bare(code: str) -> str:
    """Return a code without case and separators."""
    return code.lower().replace("_", "").replace("-", "").replace(" ", "")


def plainly(rule: ClassifyRule, facts: Facts) -> bool:
    """Return whether the rule matches, without any index."""
    signs = (
        not {bare(code) for code in rule.code}.isdisjoint(map(bare, facts.codes)),
        any(name in facts.exception_names for name in rule.exception),
        facts.errno in rule.errno,
        facts.exit_code in rule.exit_code,
        any(phrase.found_in(facts.message_text) for phrase in parse_phrases(rule.message_has)),
        any(phrase.found_in(facts.output) for phrase in parse_phrases(rule.output_has)),
        any(Occurrences(facts.statement_words, facts.message).has(parse_statement(text)) for text in rule.says),
    )
    if any(getattr(rule, sign) for sign in SIGNS) and not any(signs):
        return False
    return RuleIndex((rule,)).first_match(facts) is rule


TEXTS = st.lists(
    st.sampled_from(
        sorted(
            {
                word
                for rule in RULES
                for phrase in parse_phrases((*rule.message_has, *rule.output_has))
                for word in phrase.words
            }
        )
    ),
    max_size=12,
).map(" ".join)


INDEX = RuleIndex(RULES)


@settings(max_examples=150)
@given(
    text=TEXTS | st.sampled_from([rule.example.text for rule in RULES]),
    status=st.none() | st.sampled_from([200, 400, 403, 404, 429, 500, 503]),
    code=st.sampled_from(["", *(code for rule in RULES for code in rule.code)]),
    phase=st.sampled_from(list(Phase)),
    exit_code=st.none() | st.sampled_from([0, 1, 124, 127, 137]),
)
def test_the_index_is_only_faster(
    text: str, status: int | None, code: str, phase: Phase, exit_code: int | None
) -> None:
    """The index finds the first of the matching rules."""
    facts = read_facts(Evidence(text=text, status=status, code=code, phase=phase, exit_code=exit_code))
    matching = [rule.id for rule in RULES if plainly(rule, facts)]
    found = INDEX.first_match(facts)
    assert (found and found.id) == (matching[0] if matching else None)


def own(**asks: object) -> ClassifyRule:
    return ClassifyRule(**{"id": "own", "kind": Kind.SERVICE_DOWN, "why": "Ours.", "example": Evidence(), **asks})  # type: ignore[arg-type]


def test_own_rules_before_and_after() -> None:
    """Rules before the built-in ones are tried first, rules after them last; a reset restores the defaults."""
    assert classify("proxy queue is full").kind is Kind.OVERLOADED
    use_rules(before=[own(message_has=("proxy queue is full",))])
    assert classify("proxy queue is full").rule == "own"
    assert rules()[0].id == "own"
    use_rules(after=[own(message_has=("queue is full", "frobnicated")), own(id="last", status=(299,))])
    assert classify("proxy queue is full").rule == "overloaded"
    assert classify("it frobnicated").rule == "own"
    assert classify({"status": 299}).rule == "last"
    use_rules()
    assert classify("it frobnicated").kind is Kind.UNKNOWN
    assert rules() == RULES


@pytest.mark.parametrize(
    ("asks", "evidence", "matches"),
    [
        ({"phase": (Phase.STREAM,)}, Evidence(phase=Phase.STREAM), True),
        ({"phase": (Phase.STREAM,)}, Evidence(), False),
        ({"provider": ("acme",)}, Evidence(provider="ACME"), True),
        ({"provider": ("acme",)}, Evidence(provider="other"), False),
        ({"contains": ("x-odd",)}, Evidence(text="an X-Odd thing"), True),
        ({"contains": ("x-odd",)}, Evidence(text="an odd thing"), False),
        ({"message_has": ("odd",), "except_if": ("fine",)}, Evidence(text="odd but fine"), False),
        ({"message_has": ("odd",), "except_if": ("fine",)}, Evidence(text="odd"), True),
        ({"message_has": ("odd",), "wait_over": 10.0}, Evidence(text="odd, retry after 20 seconds"), True),
        ({"message_has": ("odd",), "wait_over": 10.0}, Evidence(text="odd, retry after 5 seconds"), False),
        ({"message_has": ("odd",), "wait_under": 10.0}, Evidence(text="odd, retry after 5 seconds"), True),
        ({"message_has": ("odd",), "wait_under": 10.0}, Evidence(text="odd"), False),
        ({"message_has": ("odd",), "over_limit": True}, Evidence(text="odd: Limit 5, Requested 6"), True),
        ({"message_has": ("odd",), "over_limit": True}, Evidence(text="odd: Limit 6, Requested 5"), False),
        ({"message_has": ("odd",), "status": (418,)}, Evidence(text="odd", status=418), True),
        ({"message_has": ("odd",), "status": (418,)}, Evidence(text="odd", status=419), False),
        ({"errno": (5,)}, Evidence(errno=5), True),
        ({"exit_code": (9,)}, Evidence(exit_code=9), True),
        ({"exception": ("OddError",)}, Evidence(exceptions=("pack.OddError",)), True),
        ({"code": ("ODD_CODE",)}, Evidence(code="other odd_code"), True),
    ],
)
def test_signs_and_conditions(asks: dict[str, object], evidence: Evidence, matches: bool) -> None:
    """A rule matches if one of its signs is present and all of its conditions hold."""
    assert (RuleIndex((own(**asks),)).first_match(read_facts(evidence)) is not None) is matches


def test_what_a_rule_asks_for() -> None:
    """Descriptions list only set conditions, with runs of numbers collapsed."""
    rule = own(code=("a", "b"), status=(None, 200, *range(500, 600), 7, 8), wait_over=5.0)
    assert describe_conditions(rule) == {
        "code": ["a", "b"],
        "status": ["none", "7, 8", "200", "500 to 599"],
        "wait_over": ["5.0"],
    }
