"""What a rule is, and the table that finds the first one that matches without trying them all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.failures import Evidence, Kind, Phase
from rung.core.phrases import Phrase, phrases

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rung.core.reading import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way of recognising a kind: its id, why it holds, an example, its signs and its conditions.

    It matches when at least one of its signs is there and all of its conditions hold. Signs: `code`, `raised`
    (a class of an exception, without its module), `errno`, `exit_code`, `says` (phrases in what a service says
    of itself), `prints` (phrases in any text, also in what a tool printed). A rule without signs matches on its
    conditions alone: `status`, `phase`, `provider`, `mentions` (text that must be there, as it is written, in
    small letters), `wait_over` and `wait_under` (seconds we are asked to wait), `over_limit` (its own
    numbers say that it asks for more than the limit), `unless` (phrases that speak against it).
    """

    id: str
    kind: Kind
    why: str
    example: Evidence
    retryable: bool = False
    code: Sequence[str] = ()
    raised: Sequence[str] = ()
    errno: Sequence[int] = ()
    exit_code: Sequence[int] = ()
    says: Sequence[str] = ()
    prints: Sequence[str] = ()
    status: Sequence[int | None] | range = ()
    phase: Sequence[Phase] = ()
    provider: Sequence[str] = ()
    mentions: Sequence[str] = ()
    unless: Sequence[str] = ()
    wait_over: float | None = None
    wait_under: float | None = None
    over_limit: bool = False


def asked_by(rule: Rule) -> dict[str, list[str]]:
    """What a rule asks for, by name, in words for people: only what it asks."""
    asked = {name: getattr(rule, name) for name in (*SIGNS, *_CONDITIONS)}
    words: dict[str, list[str]] = {}
    for name, wanted in asked.items():
        if name in {"status", "exit_code"} and wanted:
            words[name] = _spans(wanted)
        elif isinstance(wanted, tuple) and wanted:
            words[name] = [str(value) for value in wanted]
        elif wanted:
            words[name] = [str(wanted)]
    return words


def _spans(numbers: Collection[int | None]) -> list[str]:
    """Numbers with runs of them drawn together: "none, 200, 500 to 599"."""
    spans: list[list[int]] = []
    for number in sorted(number for number in numbers if number is not None):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words = [f"{span[0]} to {span[-1]}" if span[2:] else ", ".join(map(str, span)) for span in spans]
    return ["none", *words] if None in numbers else words


_CONDITIONS: Final = ("status", "phase", "provider", "mentions", "wait_over", "wait_under", "over_limit", "unless")
SIGNS: Final = ("code", "raised", "errno", "exit_code", "says", "prints")


class _Ready:
    """A rule's conditions, made ready to be asked."""

    __slots__ = ("bare", "rule", "unless", "waits")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.unless = tuple((phrase.parts[0].strip(), phrase) for phrase in phrases(rule.unless))
        self.waits = rule.wait_over is not None or rule.wait_under is not None
        self.bare = not (
            rule.status or rule.phase or rule.provider or rule.mentions or rule.unless or self.waits or rule.over_limit
        )

    def holds(self, facts: Facts) -> bool:
        if self.bare:
            return True
        rule = self.rule
        if rule.status and facts.status not in rule.status:
            return False
        if rule.phase and facts.phase not in rule.phase:
            return False
        if rule.provider and facts.provider not in rule.provider:
            return False
        if self.waits and not (
            facts.wait is not None and (rule.wait_over or 0.0) <= facts.wait <= (rule.wait_under or float("inf"))
        ):
            return False
        if rule.over_limit and not _over_limit(facts.message):
            return False
        if rule.mentions:
            raw = facts.raw.lower()
            if not any(part in raw for part in rule.mentions):
                return False
        return not (self.unless and _any_in(self.unless, facts.output))


def _over_limit(message: str) -> bool:
    from rung.core.tokens import over_limit  # two large patterns, for few messages

    return over_limit(message)


def _any_in(wanted: tuple[tuple[str, Phrase], ...], text: str) -> bool:
    for bare, phrase in wanted:  # noqa: SIM110  # a generator costs more than what it looks for
        if bare in text and phrase.found_in(text):
            return True
    return False


# Words that every second error has: poor to search by.
_EVERYDAY: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "api",
        "are",
        "at",
        "be",
        "been",
        "before",
        "by",
        "can",
        "cannot",
        "code",
        "could",
        "did",
        "do",
        "does",
        "error",
        "failed",
        "file",
        "for",
        "from",
        "had",
        "has",
        "have",
        "i",
        "if",
        "in",
        "is",
        "it",
        "key",
        "limit",
        "limits",
        "max",
        "maximum",
        "message",
        "model",
        "models",
        "more",
        "must",
        "no",
        "not",
        "of",
        "on",
        "or",
        "please",
        "request",
        "requests",
        "response",
        "should",
        "that",
        "the",
        "this",
        "to",
        "token",
        "tokens",
        "try",
        "used",
        "use",
        "using",
        "was",
        "were",
        "when",
        "with",
        "you",
        "your",
        "1",
        "2",
        "3",
        "4",
        "5",
        "again",
        "exceeded",
        "exceeds",
        "found",
        "reached",
        "requested",
        "organization",
        "available",
        "access",
        "provided",
        "invalid",
    ]
)


class _Look(NamedTuple):
    """A phrase to look for once its rarest word was seen, and the rule whose sign it is."""

    place: int
    in_said: bool
    bare: str  # the phrase's first words: found, or not found, faster than with the spaces around them
    phrase: Phrase


class Table:
    """Rules in their order, indexed by their signs: only those with a sign that is there are asked."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        self._ready = tuple(_Ready(rule) for rule in self.rules)
        self._codes: dict[str, list[int]] = {}
        self._names: dict[str, list[int]] = {}
        self._errnos: dict[int | None, list[int]] = {}
        self._exits: dict[int | None, list[int]] = {}
        self._statuses: dict[int | None, list[int]] = {}
        self._words: dict[str, list[_Look]] = {}
        self._phases: dict[Phase, list[int]] = {}
        for place, rule in enumerate(self.rules):
            self._add(place, rule)
        self._add_phrases()
        self._known_words = frozenset(self._words)

    def _add(self, place: int, rule: Rule) -> None:
        for code in rule.code:
            self._codes.setdefault(code.lower(), []).append(place)
        for name in rule.raised:
            self._names.setdefault(name, []).append(place)
        for number in rule.errno:
            self._errnos.setdefault(number, []).append(place)
        for number in rule.exit_code:
            self._exits.setdefault(number, []).append(place)
        if any(getattr(rule, sign) for sign in SIGNS):
            return
        if rule.status:
            for status in range(100, 600):
                if status in rule.status:
                    self._statuses.setdefault(status, []).append(place)
        else:
            for phase in rule.phase or Phase:
                self._phases.setdefault(phase, []).append(place)

    def _add_phrases(self) -> None:
        """Each phrase under that word of it which the fewest phrases share."""
        looked_for = [
            (place, in_said, phrase)
            for place, rule in enumerate(self.rules)
            for in_said, written in ((True, rule.says), (False, rule.prints))
            for phrase in phrases(written)
        ]
        common = Counter(word for _, _, phrase in looked_for for word in phrase.words)
        for place, in_said, phrase in looked_for:
            key = min(phrase.words, key=lambda word: (word in _EVERYDAY, common[word], -len(word)))
            self._words.setdefault(key, []).append(_Look(place, in_said, phrase.parts[0].strip(), phrase))

    def first(self, facts: Facts) -> Rule | None:
        """The first rule that matches."""
        ready = self._ready
        for place in sorted(self._signs(facts)):
            if ready[place].holds(facts):
                return ready[place].rule
        return None

    def _signs(self, facts: Facts) -> set[int]:
        """The places of the rules of which a sign is there."""
        places = set(self._phases.get(facts.phase, ()))
        for index, signs in ((self._codes, facts.codes), (self._names, facts.names)):
            for sign in signs:
                if sign in index:
                    places.update(index[sign])
        for numbers, number in (
            (self._errnos, facts.errno),
            (self._exits, facts.exit_code),
            (self._statuses, facts.status),
        ):
            if number in numbers:
                places.update(numbers[number])
        said, output = facts.said, facts.output
        for word in self._known_words.intersection(facts.words):
            for place, in_said, bare, phrase in self._words[word]:
                text = said if in_said else output
                if bare in text and phrase.found_in(text):
                    places.add(place)
        return places
