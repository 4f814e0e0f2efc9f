"""Rules of one's own, from plain tables (TOML): checked as a whole, every error names its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.errors import ConfigError
from rung.core.evidence import evidence_of
from rung.core.failures import NEVER_RETRYABLE, Evidence, Kind, Phase
from rung.core.phrases import phrases
from rung.core.reading import read
from rung.core.rules import SIGNS, Rule, Table

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES: Final = ("before", "after")
_TEXTS: Final = ("code", "raised", "provider", "mentions")
_NUMBERS: Final = ("errno", "exit_code", "status")
_PHRASES: Final = ("says", "prints", "unless")
_SECONDS: Final = ("wait_over", "wait_under")
RULE_KEYS: Final = (
    "id", "kind", "why", "retryable", "place", "example", "phase", *_TEXTS, *_NUMBERS, *_PHRASES, *_SECONDS,
)  # fmt: skip


class OwnRules(NamedTuple):
    """A user's rules: those asked before ours, and those asked after."""

    before: tuple[Rule, ...] = ()
    after: tuple[Rule, ...] = ()


def rules_from(rows: object, where: str = "rules") -> OwnRules:
    """The rules in a list of tables; `place` says whether one is asked before ours (default) or after."""
    if not isinstance(rows, list):
        raise ConfigError(where, rows, "a list of tables: [[rules]]")
    placed: dict[str, list[Rule]] = {place: [] for place in PLACES}
    seen: set[str] = set()
    for number, row in enumerate(rows):
        here = f"{where}[{number}]"
        if not isinstance(row, Mapping):
            raise ConfigError(here, row, "a table")
        rule, place = _rule(dict(row), here)
        if rule.id in seen:
            raise ConfigError(f"{here}.id", rule.id, "an id that no other rule of the file has")
        seen.add(rule.id)
        placed[place].append(rule)
    return OwnRules(tuple(placed["before"]), tuple(placed["after"]))


def _rule(row: dict[str, Any], here: str) -> tuple[Rule, str]:
    for key, value in row.items():
        if key not in RULE_KEYS:
            raise ConfigError(f"{here}.{key}", value, "one of the keys " + ", ".join(RULE_KEYS))
    name = row.get("id")
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{here}.id", name, "a text that names the rule")
    kind = row.get("kind")
    if kind not in tuple(Kind):
        raise ConfigError(f"{here}.kind", kind, "one of " + ", ".join(Kind))
    place = row.get("place", "before")
    if place not in PLACES:
        raise ConfigError(f"{here}.place", place, "before or after")
    retryable = row.get("retryable", False)
    if not isinstance(retryable, bool):
        raise ConfigError(f"{here}.retryable", retryable, "true or false")
    if retryable and kind in NEVER_RETRYABLE:
        raise ConfigError(f"{here}.retryable", retryable, f"false: repeating {kind} unchanged never helps")
    asked = _asked(row, here)
    if not any(asked.get(key) for key in (*SIGNS, "status", "phase", "provider", "mentions")):
        raise ConfigError(
            here, name, f"at least one of {', '.join((*SIGNS, 'status', 'phase', 'provider', 'mentions'))}"
        )
    example = evidence_of(row["example"]) if "example" in row else Evidence()
    why = _text(row.get("why", "A rule of one's own."), f"{here}.why")
    rule = Rule(id=name, kind=Kind(kind), why=why, retryable=retryable, example=example, **asked)
    if "example" in row and Table((rule,)).first(read(example)) is None:
        raise ConfigError(f"{here}.example", row["example"], "an error that the rule itself matches")
    return rule, place


def _asked(row: dict[str, Any], here: str) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    ways: tuple[tuple[tuple[str, ...], Callable[[object, str], object]], ...] = (
        (_TEXTS, _text),
        (_NUMBERS, _whole),
        (_PHRASES, _phrase),
        (("phase",), _phase),
    )
    for keys, way in ways:
        for key in keys:
            if key in row:
                asked[key] = tuple(way(value, f"{here}.{key}") for value in _listed(row[key]))
    if "mentions" in asked:
        asked["mentions"] = tuple(text.lower() for text in asked["mentions"])
    for key in _SECONDS:
        value = row.get(key)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise ConfigError(f"{here}.{key}", value, "a number of seconds, 0 or more")
            asked[key] = float(value)
    return asked


def _listed(value: object) -> list[object]:
    """One value may stand for a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(where, value, "a text")
    return value


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(where, value, "a whole number")
    return value


def _phrase(value: object, where: str) -> str:
    text = _text(value, where)
    if not all(phrase.words for phrase in phrases((text,))):
        raise ConfigError(where, value, "words, with * for a gap, a/b for either word, ^ and $ for the ends of a line")
    return text


def _phase(value: object, where: str) -> Phase:
    for phase in Phase:
        if value == phase:
            return phase
    raise ConfigError(where, value, "one of " + ", ".join(Phase))
