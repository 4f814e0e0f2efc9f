"""Index of phrases: which of them a text may contain, by two words that each of them needs.

The key word of a phrase is its longest word that is not common. A phrase is parsed when its key word first occurs in a
text, which most never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.phrases import OPERATORS, Phrase, parse_phrases, split_phrase

if TYPE_CHECKING:
    from collections.abc import Iterable

# Words that most errors contain: poor keys.
_COMMON_WORDS_TEXT: Final = (
    "a an and api are at be been before by can cannot code could did do does error failed file for from had has have "
    "i if in is it key limit limits max maximum message model models more must no not of on or please request "
    "requests response should that the this to token tokens try used use using was were when with you your 1 2 3 4 5 "
    "again exceeded exceeds found reached requested organization available access provided invalid command input "
    "output length context rate quota prompt size version server directory type id line usage number current |"
)
_COMMON_WORDS: Final = frozenset(_COMMON_WORDS_TEXT.split())
_COMMON_COST: Final = 100  # more than any word has characters


class PhraseMatcher(NamedTuple):
    """A phrase, and the rule that it is a sign of."""

    position: int  # of the rule
    in_message: bool  # search the service's message instead of the whole text
    first_part: str
    gapped: Phrase | None  # the whole phrase, if it has more than one part


class PhraseIndex(dict[str, tuple[frozenset[str], dict[str, list[PhraseMatcher]]]]):
    """Maps a key word to the second words of its phrases, and to the phrases by their second word.

    The second word is usually absent from a text, and a comparison of two sets shows it fast.
    """

    def __init__(self, phrases: Iterable[tuple[int, bool, str]]) -> None:
        """Index the text of each phrase, with the position of its rule and whether it is searched in the message."""
        self._unparsed: dict[str, list[tuple[int, bool, str]]] = {}
        for phrase in phrases:
            for word in _key_words(phrase[2]):
                self._unparsed.setdefault(word, []).append(phrase)
        self.words = frozenset(self._unparsed)

    def __missing__(self, key: str) -> tuple[frozenset[str], dict[str, list[PhraseMatcher]]]:
        """Parse the phrases of a key word."""
        by_second: dict[str, list[PhraseMatcher]] = {}
        for position, in_message, text in self._unparsed[key]:
            for phrase in parse_phrases((text,)):
                if key in phrase.words:
                    first, *more = phrase.parts
                    second = min((word for word in phrase.words if word != key), key=_cost, default=key)
                    matcher = PhraseMatcher(position, in_message, first, phrase if more else None)
                    by_second.setdefault(second, []).append(matcher)
        found = self[key] = (frozenset(by_second), by_second)
        return found


def _key_words(phrase: str) -> list[str]:
    """Return the alternatives of the word by which a phrase is found best."""
    places = [place for place in split_phrase(phrase) if place not in OPERATORS]
    if "/" not in phrase:
        return [min(places, key=_cost)] if places else []
    return min((place.split("/") for place in places), key=lambda words: max(map(_cost, words)))


def key_word(phrase: Phrase) -> str:
    """Return the word of a phrase that occurs in the fewest texts."""
    return min(phrase.words, key=_cost, default="")


def _cost(word: str) -> int:
    return (_COMMON_COST if word in _COMMON_WORDS else 0) - len(word)
