"""Statements: which concepts occur close to each other in a message, in any order.

A statement is a text of concept names, such as "prompt, exceeds, !per time": all of them occur within a few words, and
none of those behind "!". Concepts are in `concepts`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.concepts import CONCEPTS
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.phrases import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SPAN_WORDS: Final = 14  # from the first to the last concept of a statement
_NEAR_WORDS: Final = 8  # beside a statement, where an unwanted concept counts as well
MAX_WORDS: Final = 400  # of a message that are read
MAX_CHARACTERS: Final = 1_000  # in which numbers are compared


_NUMBER: Final = r"\d{1,3}(?:[,_ ]\d{3})+(?!\d)|\d+(?:\.\d+)?"
_BOUND: Final = LazyPattern(
    rf"(?:limit|max|maximum|ceiling|window|cap|capacity|only|at most|up to|allowed|available|size|less than|<=?|>)\w*[^\d]{{0,30}}?({_NUMBER})"
)
_TWO_DIGITS: Final = LazyPattern(r"\d[\d,_ ]*\d")
_ANY_NUMBER: Final = LazyPattern(_NUMBER)
_SMALLEST: Final = 10.0  # smaller numbers count things, or belong to names


def is_above_bound(text: str) -> bool:
    """Return whether a text states a bound ("limit of 272000") and a larger quantity."""
    text = text[:MAX_CHARACTERS].lower()
    if _TWO_DIGITS.search(text) is None:
        return False  # no number is as large as the smallest bound
    bounds = {match.start(1): _value(match[1]) for match in _BOUND.finditer(text)}
    if not bounds:
        return False
    lowest = min((bound for bound in bounds.values() if bound >= _SMALLEST), default=None)
    others = [_value(match[0]) for match in _ANY_NUMBER.finditer(text) if match.start() not in bounds]
    return lowest is not None and any(lowest < other <= lowest * 1_000 for other in others)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("_", "").replace(" ", ""))


class Statement(NamedTuple):
    """Concepts as bits: those that must occur, and those that must not."""

    wanted: int
    unwanted: int


ABOVE_BOUND: Final = "above bound"  # the concept that numbers make: a quantity is larger than a stated bound
CONCEPT_NAMES: Final = (*CONCEPTS, ABOVE_BOUND)
_BITS: Final = {name: 1 << number for number, name in enumerate(CONCEPT_NAMES)}
_ABOVE: Final = _BITS[ABOVE_BOUND]


def is_statement(text: str) -> bool:
    """Return whether a text consists of concept names, at least one of which must occur."""
    names = [name.strip() for name in text.split(",")]
    return all(name.removeprefix("!") in _BITS for name in names) and any(not name.startswith("!") for name in names)


def parse_statement(text: str) -> Statement:
    """Return a statement: concept names, separated by commas, with "!" before those that must not occur."""
    wanted = unwanted = 0
    for name in map(str.strip, text.split(",")):
        if name.startswith("!"):
            unwanted |= _BITS[name[1:]]
        else:
            wanted |= _BITS[name]
    return Statement(wanted, unwanted)


_Expressions = dict[str, list[tuple[list[str], int]]]  # by their second word: the words behind it, and the bit


@cache  # built when a statement is first searched
def _by_word() -> dict[str, tuple[int, _Expressions]]:
    """Return the concepts of each word: the bits of the word alone, and the expressions of several words that it begins."""
    found: dict[str, tuple[int, _Expressions]] = {}
    for name, texts in CONCEPTS.items():
        for expression in " ".join(words_of(texts.replace(",", "\n"))).split("|")[1:-1]:
            first, *rest = expression.split()
            bits, several = found.get(first, (0, {}))
            if rest:
                several.setdefault(rest[0], []).append((rest[1:], _BITS[name]))
                found[first] = (bits, several)
            else:
                found[first] = (bits | _BITS[name], several)
    return found


class Occurrences:
    """The concepts in a message, and where they stand."""

    __slots__ = ("_is_above", "_places", "_text", "present")

    def __init__(self, words: Sequence[str], text: str = "") -> None:
        places = []
        present = 0
        by_word = _by_word()
        for place in [place for place, word in enumerate(words[:MAX_WORDS]) if word in by_word]:
            bits, several = by_word[words[place]]
            follower = words[place + 1]
            if follower in several:
                for rest, bit in several[follower]:
                    if not rest or [*words[place + 2 : place + 2 + len(rest)]] == rest:
                        bits |= bit
            if bits:
                places.append((place, bits))
                present |= bits
        self._places = places
        self._text = text
        self._is_above: bool | None = None
        self.present = present | _ABOVE

    def has(self, statement: Statement) -> bool:
        """Return whether the wanted concepts stand close to each other, and no unwanted one among them."""
        wanted, unwanted = statement
        if wanted & ~self.present:
            return False
        if wanted & _ABOVE:
            if not self._above_bound():
                return False
            wanted ^= _ABOVE  # it holds for the whole message
        return self._stand_close(wanted, unwanted)

    def _above_bound(self) -> bool:
        if self._is_above is None:
            self._is_above = is_above_bound(self._text)
        return self._is_above

    def _stand_close(self, wanted: int, unwanted: int) -> bool:
        last: dict[int, int] = {}
        count = wanted.bit_count()
        for place, bits in self._places:
            found = bits & wanted
            while found:
                bit = found & -found
                found ^= bit
                last[bit] = place
            if bits & wanted and len(last) == count:
                start = min(last.values())
                if place - start <= MAX_SPAN_WORDS and not any(
                    bits & unwanted for at, bits in self._places if start - _NEAR_WORDS <= at <= place + _NEAR_WORDS
                ):
                    return True
        return False
