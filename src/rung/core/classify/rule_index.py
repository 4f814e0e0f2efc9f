"""What a rule is, and the table that finds the first one that matches without trying them all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.phrases import Phrase, phrases
from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rung.core.classify.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyRule:
    """One way of recognising a kind: its id, why it holds, an example, its signs and its conditions.

    It matches when at least one of its signs is there and all of its conditions hold. Signs: `code`, `exception`
    (a class of an exception, without its module), `errno`, `exit_code`, `message_has` (phrases in what a service says
    of itself), `output_has` (phrases in any text, also in what a tool printed). A rule without signs matches on its
    conditions alone: `status`, `phase`, `provider`, `contains` (text that must be there, as it is written, in
    small letters), `wait_over` and `wait_under` (seconds we are asked to wait), `over_limit` (its own
    numbers say that it asks for more than the limit), `except_if` (phrases that speak against it).
    """

    id: str
    kind: Kind
    why: str
    example: Evidence
    retryable: bool = False
    code: Sequence[str] = ()
    exception: Sequence[str] = ()
    errno: Sequence[int] = ()
    exit_code: Sequence[int] = ()
    message_has: Sequence[str] = ()
    output_has: Sequence[str] = ()
    status: Sequence[int | None] | range = ()
    phase: Sequence[Phase] = ()
    provider: Sequence[str] = ()
    contains: Sequence[str] = ()
    except_if: Sequence[str] = ()
    wait_over: float | None = None
    wait_under: float | None = None
    over_limit: bool = False


def asked_by(rule: ClassifyRule) -> dict[str, list[str]]:
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


_CONDITIONS: Final = ("status", "phase", "provider", "contains", "wait_over", "wait_under", "over_limit", "except_if")
SIGNS: Final = ("code", "exception", "errno", "exit_code", "message_has", "output_has")


class _Conditions:
    """A rule's conditions, made ready to be asked."""

    __slots__ = ("_contains", "_except_if", "_over_limit", "_phase", "_provider", "_status", "_wait")

    def __init__(self, rule: ClassifyRule) -> None:
        self._status = frozenset(rule.status)
        self._phase = rule.phase
        self._provider = rule.provider
        self._wait: tuple[float, float] | None = None
        if rule.wait_over is not None or rule.wait_under is not None:
            self._wait = (rule.wait_over or 0.0, float("inf") if rule.wait_under is None else rule.wait_under)
        self._over_limit = rule.over_limit
        self._contains = rule.contains
        self._except_if = tuple((phrase.parts[0].strip(), phrase) for phrase in phrases(rule.except_if))

    def any(self) -> bool:
        """Is there anything to ask?"""
        return any(getattr(self, name) for name in self.__slots__)

    def hold(self, facts: Facts) -> bool:
        if self._status and facts.status not in self._status:
            return False
        if self._phase and facts.phase not in self._phase:
            return False
        if self._provider and facts.provider not in self._provider:
            return False
        if self._wait and not (facts.wait is not None and self._wait[0] <= facts.wait <= self._wait[1]):
            return False
        if self._over_limit and not _over_limit(facts.message):
            return False
        if self._contains:
            small = facts.raw.lower()
            if not any(part in small for part in self._contains):
                return False
        return not (self._except_if and _any_in(self._except_if, facts.output))


def _over_limit(message: str) -> bool:
    from rung.core.domain.token_counts import exceeds_rate_limit  # two large patterns, for few messages

    return exceeds_rate_limit(message)


def _any_in(wanted: tuple[tuple[str, Phrase], ...], text: str) -> bool:
    for bare, phrase in wanted:  # noqa: SIM110  # a generator costs more than what it looks for
        if bare in text and phrase.found_in(text):
            return True
    return False


# Words that every second error has: poor to search by.
_EVERYDAY_TEXT: Final = (
    "a an and api are at be been before by can cannot code could did do does error failed file for from had has have "
    "i if in is it key limit limits max maximum message model models more must no not of on or please request "
    "requests response should that the this to token tokens try used use using was were when with you your 1 2 3 4 5 "
    "again exceeded exceeds found reached requested organization available access provided invalid command input "
    "output length context rate quota prompt size version server directory type id line usage number current |"
)
_EVERYDAY: Final = frozenset(_EVERYDAY_TEXT.split())


class _RuleMatcher(NamedTuple):
    """A phrase to look for once its rarest word was seen, and the rule whose sign it is."""

    place: int
    other: str  # its next rarest word: mostly not there, and then nothing has to be searched for
    in_said: bool
    first: str  # its first part
    gapped: Phrase | None  # the phrase, where there is more to it than its first part


class RuleIndex:
    """Rules in their order, indexed by their signs: only those with a sign that is there are asked.

    The place of the best rule yet bounds the search: whatever stands after it is not even looked for.
    """

    def __init__(self, rules: Iterable[ClassifyRule]) -> None:
        self.rules: tuple[ClassifyRule, ...] = tuple(rules)
        conditions = [_Conditions(rule) for rule in self.rules]
        self._conditions = tuple(asked if asked.any() else None for asked in conditions)
        # Each from a sign to the places of the rules that have it, in their order.
        self._codes: dict[str, list[int]] = {}
        self._names: dict[str, list[int]] = {}
        self._errnos: dict[int | None, list[int]] = {}
        self._exits: dict[int | None, list[int]] = {}
        self._statuses: dict[int | None, list[int]] = {}
        self._phases: dict[Phase, list[int]] = {}
        for place, rule in enumerate(self.rules):
            self._add(place, rule)
        self._looks: dict[str, list[_RuleMatcher]] = {}
        self._add_phrases()
        self._known_words = frozenset(self._looks)

    def _add(self, place: int, rule: ClassifyRule) -> None:
        for code in rule.code:
            self._codes.setdefault(code.lower(), []).append(place)
        for name in rule.exception:
            self._names.setdefault(name, []).append(place)
        for number in rule.errno:
            self._errnos.setdefault(number, []).append(place)
        for number in rule.exit_code:
            self._exits.setdefault(number, []).append(place)
        if any(getattr(rule, sign) for sign in SIGNS):
            return
        if rule.status:
            for status in rule.status:
                self._statuses.setdefault(status, []).append(place)
        else:
            for phase in rule.phase or Phase:
                self._phases.setdefault(phase, []).append(place)

    def _add_phrases(self) -> None:
        """Each phrase under that word of it which the fewest phrases share."""
        looked_for = [
            (place, in_said, phrase)
            for place, rule in enumerate(self.rules)
            for in_said, written in ((True, rule.message_has), (False, rule.output_has))
            for phrase in phrases(written)
        ]
        common = Counter(word for _, _, phrase in looked_for for word in phrase.words)
        rank = {word: (word in _EVERYDAY, count, -len(word)) for word, count in common.items()}
        for place, in_said, phrase in looked_for:
            rarest = sorted(phrase.words, key=rank.__getitem__)
            first, *more = phrase.parts
            look = _RuleMatcher(place, rarest[min(1, len(rarest) - 1)], in_said, first, phrase if more else None)
            self._looks.setdefault(rarest[0], []).append(look)

    def first(self, facts: Facts) -> ClassifyRule | None:
        """The first rule that matches."""
        best = self._by_words(facts, self._by_facts(facts))
        return self.rules[best] if best < len(self.rules) else None

    def _by_facts(self, facts: Facts) -> int:
        """The place of the first rule with a sign that is no words."""
        best = len(self.rules)
        for number, places in (
            (facts.status, self._statuses),
            (facts.exit_code, self._exits),
            (facts.errno, self._errnos),
        ):
            if number in places:
                best = self._earlier(places[number], best, facts)
        for code in facts.codes:
            if code in self._codes:
                best = self._earlier(self._codes[code], best, facts)
        for name in facts.names:
            if name in self._names:
                best = self._earlier(self._names[name], best, facts)
        if facts.phase in self._phases:
            best = self._earlier(self._phases[facts.phase], best, facts)
        return best

    def _earlier(self, places: list[int], best: int, facts: Facts) -> int:
        """The first of these places whose rule's conditions hold, if it is before the best one yet."""
        for place in places:
            if place >= best:
                break
            conditions = self._conditions[place]
            if conditions is None or conditions.hold(facts):
                return place
        return best

    def _by_words(self, facts: Facts, best: int) -> int:
        """The place of the first rule of which a phrase is there, if it is before the best one yet."""
        there = facts.there
        for word in there & self._known_words:
            for place, other, in_said, first, gapped in self._looks[word]:
                if place >= best:
                    break
                if other in there:
                    text = facts.said if in_said else facts.output
                    if first in text and (gapped is None or gapped.found_in(text)):
                        conditions = self._conditions[place]
                        if conditions is None or conditions.hold(facts):
                            best = place
                            break
        return best
