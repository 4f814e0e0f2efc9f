"""Parse a user's classification rules from the `[[rules]]` tables of a policy file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NamedTuple

from rung.core.classify.evidence import evidence_of
from rung.core.classify.phrases import parse_phrases
from rung.core.classify.read_facts import read_facts
from rung.core.classify.rule_index import SIGNS, ClassifyRule, RuleIndex
from rung.core.classify.statements import CONCEPT_NAMES, is_statement
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import NEVER_RETRYABLE, Evidence, Kind, Phase
from rung.core.domain.settings_schema import FLAG, SECONDS, TEXT, Type, one_of, optional, read_rows, setting, settings

PLACES: Final = ("before", "after")
_MATCH_FIELDS: Final = (*SIGNS, "status", "phase", "provider", "contains")  # a rule needs one of these


class UserRules(NamedTuple):
    """A user's rules: those tried before the built-in rules, and those tried after."""

    before: tuple[ClassifyRule, ...] = ()
    after: tuple[ClassifyRule, ...] = ()


def _one_or_list(type: Type) -> Type:  # noqa: A002
    """Return a type that accepts one value or a list of values."""

    def read_each(value: Any, key: str) -> tuple[Any, ...]:
        return tuple(type.read(item, key) for item in (value if isinstance(value, list | tuple) else (value,)))

    return Type(f"{type.allowed}, or a list of them", parse=read_each)


_TEXTS: Final = _one_or_list(TEXT)
_NUMBERS: Final = _one_or_list(Type("a whole number", lambda value: type(value) is int))
_PHRASE: Final = Type(
    "a text of words, with * for a gap, a/b for either word, ^ and $ for the ends of a line",
    lambda value: TEXT.is_valid(value) and all(phrase.words for phrase in parse_phrases((value,))),
)
_PHRASES: Final = _one_or_list(_PHRASE)
_STATEMENT: Final = Type(
    f"concepts separated by commas, with ! before those that must not occur: {', '.join(CONCEPT_NAMES)}",
    lambda value: TEXT.is_valid(value) and is_statement(value),
)


@settings
class RuleTable:
    """One `[[rules]]` table."""

    id: str = setting(TEXT, "Unique id of the rule.")
    kind: Kind = setting(one_of(Kind), "Kind of the failures that match.")
    why: str = setting(TEXT, "Reason, shown with the failure.", default="User-defined rule.")
    retryable: bool = setting(FLAG, "Whether the same request may be repeated.", default=False)
    place: str = setting(
        one_of(PLACES), "Whether the rule is tried before or after the built-in rules.", default="before"
    )
    example: Any = setting(Type("a failure"), "A failure that the rule must match.", default=None)
    phase: tuple[Phase, ...] = setting(_one_or_list(one_of(Phase)), "Phase in which the failure occurred.", default=())
    code: tuple[str, ...] = setting(_TEXTS, "Error code.", default=())
    exception: tuple[str, ...] = setting(_TEXTS, "Exception class, without its module.", default=())
    provider: tuple[str, ...] = setting(_TEXTS, "Provider.", default=())
    contains: tuple[str, ...] = setting(_TEXTS, "Literal text, in any case.", default=())
    errno: tuple[int, ...] = setting(_NUMBERS, "`errno` of the operating system.", default=())
    exit_code: tuple[int, ...] = setting(_NUMBERS, "Exit code of a process.", default=())
    status: tuple[int, ...] = setting(_NUMBERS, "HTTP status.", default=())
    message_has: tuple[str, ...] = setting(_PHRASES, "Phrases in the service's own message.", default=())
    output_has: tuple[str, ...] = setting(_PHRASES, "Phrases in any text, the output of tools included.", default=())
    says: tuple[str, ...] = setting(
        _one_or_list(_STATEMENT), "Statements in the service's own message: concepts close to each other.", default=()
    )
    except_if: tuple[str, ...] = setting(_PHRASES, "Phrases that prevent a match.", default=())
    wait_over: float | None = setting(optional(SECONDS), "Lower bound of the requested wait.", default=None)
    wait_under: float | None = setting(optional(SECONDS), "Upper bound of the requested wait.", default=None)


def rules_from(rows: object, where: str = "rules") -> UserRules:
    """Parse a list of rule tables; `place` puts a rule before (default) or after the built-in rules."""
    tables = read_rows(RuleTable, rows, where)
    rules = [(row.place, _build_rule(row, f"{where}[{number}]")) for number, row in enumerate(tables)]
    return UserRules(*(tuple(rule for at, rule in rules if at == place) for place in PLACES))


_CONDITIONS: Final = tuple(
    each.name for each in fields(ClassifyRule) if each.name not in ("example", "over_limit", "contains", "sure")
)


def _build_rule(row: RuleTable, here: str) -> ClassifyRule:
    if row.retryable and row.kind in NEVER_RETRYABLE:
        raise ConfigError(f"{here}.retryable", row.retryable, f"false: retrying {row.kind} unchanged never helps")
    if not any(getattr(row, name) for name in _MATCH_FIELDS):
        raise ConfigError(here, row.id, f"at least one of {', '.join(_MATCH_FIELDS)}")
    example = Evidence() if row.example is None else evidence_of(row.example)
    conditions = {name: getattr(row, name) for name in _CONDITIONS}
    rule = ClassifyRule(**conditions, contains=tuple(text.lower() for text in row.contains), example=example)
    if row.example is not None and RuleIndex((rule,)).first_match(read_facts(example)) is None:
        raise ConfigError(f"{here}.example", row.example, "an error that the rule itself matches")
    return rule
