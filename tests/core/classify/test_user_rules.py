"""User rules are parsed from tables and validated; every error names its key."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from rung.core.classify.classifier import classify, use_rules
from rung.core.classify.user_rules import UserRules, rules_from
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind, Phase
from rung.core.policy.parser import parse_policy_file

GOOD = {"id": "mine", "kind": "overloaded", "message_has": "queue is full"}


def test_a_file() -> None:
    """A policy file may contain rules; they come before the built-in ones by default."""
    book = parse_policy_file(
        tomllib.loads("""
            [[rules]]
            id = "our-proxy"
            kind = "overloaded"
            retryable = true
            why = "Our proxy has no room."
            message_has = ["proxy: queue * is full", "no seat"]
            status = 418
            phase = "call"
            wait_over = 1
            contains = ["Proxy"]
            provider = ["acme"]
            example = { status = 418, provider = "acme", body = "Proxy: queue 7 is full, retry after 3 seconds" }

            [[rules]]
            id = "late"
            kind = "unknown"
            place = "after"
            code = ["E_ODD"]
        """)
    )
    (early,), (late,) = book.rules
    assert (early.id, early.kind, early.retryable, early.phase) == ("our-proxy", Kind.OVERLOADED, True, (Phase.CALL,))
    assert (late.id, late.code, late.why) == ("late", ("E_ODD",), "User-defined rule.")
    try:
        use_rules(*book.rules)
        assert classify(early.example).rule == "our-proxy"
        assert classify({"code": "E_ODD"}).rule == "late"
    finally:
        use_rules()


def test_no_rules() -> None:
    """A file without rules has none."""
    assert parse_policy_file({}).rules == UserRules((), ())


@pytest.mark.parametrize(
    ("row", "key", "allowed"),
    [
        ({**GOOD, "sais": "x"}, "rules[0].sais", "one of the keys id, kind"),
        ({"kind": "overloaded", "message_has": "x"}, "rules[0].id", "a text"),
        ({**GOOD, "id": " "}, "rules[0].id", "a text"),
        ({**GOOD, "kind": "overload"}, "rules[0].kind", "one of rate_limit"),
        ({**GOOD, "place": "first"}, "rules[0].place", "one of before, after"),
        ({**GOOD, "retryable": 1}, "rules[0].retryable", "true or false"),
        ({**GOOD, "kind": "auth_error", "retryable": True}, "rules[0].retryable", "never helps"),
        ({"id": "x", "kind": "unknown"}, "rules[0]", "at least one of code, exception"),
        ({**GOOD, "message_has": "* ^"}, "rules[0].message_has", "words"),
        ({**GOOD, "message_has": [3]}, "rules[0].message_has", "a text"),
        ({**GOOD, "status": "429"}, "rules[0].status", "a whole number"),
        ({**GOOD, "status": [True]}, "rules[0].status", "a whole number"),
        ({**GOOD, "phase": "late"}, "rules[0].phase", "one of call"),
        ({**GOOD, "wait_over": -1}, "rules[0].wait_over", "seconds, 0 or more"),
        ({**GOOD, "wait_under": True}, "rules[0].wait_under", "seconds, 0 or more"),
        ({**GOOD, "why": 5}, "rules[0].why", "a text"),
        ({**GOOD, "example": "something else"}, "rules[0].example", "matches"),
        ("mine", "rules[0]", "a table"),
    ],
)
def test_bad_rules(row: Any, key: str, allowed: str) -> None:
    """Invalid rules are rejected, with the key and the allowed values."""
    with pytest.raises(ConfigError) as caught:
        rules_from([row])
    assert caught.value.key == key
    assert allowed in caught.value.allowed


def test_bad_lists() -> None:
    """Rules are a list of tables with unique ids."""
    with pytest.raises(ConfigError, match="a list of tables"):
        rules_from({"id": "x"})
    with pytest.raises(ConfigError, match="no other of rules"):
        rules_from([GOOD, GOOD])
