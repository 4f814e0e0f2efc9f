"""Phrases: the word patterns that rules search for in a text, instead of regular expressions.

A text is normalized: lower case, one space between words, no punctuation, "|" for the end of a line. A phrase consists
of normalized words and three operators: `a/b` matches either word, `*` a gap of up to MAX_GAP_CHARS characters, `^` and
`$` the start and the end of a line. Matching takes linear time for any phrase and any text.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_GAP_CHARS: Final = 100
OPERATORS: Final = frozenset({"*", "|"})
_MAX_STARTS: Final = 8  # occurrences of the first part that are tried, for a phrase with gaps

# Separators become spaces and letters lower case with one `bytes.translate`, the fastest way in Python.
_SEPARATORS: Final = b'!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\r\x0b\x0c\x00'
_ASCII: Final = range(128)
_ASCII_TABLE: Final = bytes(
    32 if byte not in _ASCII or byte in _SEPARATORS else ord(chr(byte).lower()) for byte in range(256)
)
# Chinese, Japanese and Korean are written without spaces: each character is a word.
_CJK_CHAR: Final = LazyPattern("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])")
_FIRST_CJK_CHAR: Final = "\u3040"
_OTHER_SEPARATORS: Final = LazyPattern(r"[^\w\x00-\x7f]+")  # dashes, quotation marks, arrows, emoji
_LETTERS_TABLE: Final = bytes(_ASCII_TABLE[byte] if byte in _ASCII else byte for byte in range(256))


def words_of(text: str) -> list[str]:
    """Return the normalized words of a text, with "|" at both ends of each line."""
    table = _ASCII_TABLE
    if not text.isascii():
        table = _LETTERS_TABLE
        text = _OTHER_SEPARATORS.sub(" ", text.lower().replace("\u2019", ""))
        if max(text) >= _FIRST_CJK_CHAR:
            text = " ".join(_CJK_CHAR.split(text))
    flat = text.encode("utf-8", "replace")
    # Apostrophes are deleted, so "don't" is one word.
    flat = flat.translate(table, b"'").replace(b"\n", b" | ")
    return (b"| " + flat + b" |").decode().split()


def normalized(words: Sequence[str]) -> str:
    """Join words into a normalized text."""
    return f" {' '.join(words)} "


class Phrase(NamedTuple):
    """One phrase: its parts between gaps, and its words."""

    parts: tuple[str, ...]
    words: tuple[str, ...]

    def found_in(self, text: str) -> bool:
        """Return whether a normalized text contains the phrase."""
        first = self.parts[0]
        if len(self.parts) == 1:
            return first in text
        others = self.parts[1:]
        start = text.find(first)
        for _ in range(_MAX_STARTS):
            if start < 0:
                return False
            at = start + len(first) - 1
            for part in others:
                at = text.find(part, at, at + MAX_GAP_CHARS + len(part))
                if at < 0:
                    break
                at += len(part) - 1
            else:
                return True
            start = text.find(first, start + 1)
        return False


# Normalizes the text of a phrase, except for its operators.
_PHRASE_TABLE: Final = {ord(char): " " for char in '!"#%&()+,-.:;<=>?@[\\]_`{|}~\t\n\r'} | {
    ord("^"): " | ",
    ord("$"): " | ",
    ord("*"): " * ",
    ord("'"): None,
}


_is_lower_ascii: Final = re.compile(r"[a-z0-9 /]+").fullmatch  # most phrases
_is_plain_words: Final = re.compile(r"[a-z0-9]+(?: [a-z0-9]+)*+").fullmatch  # two of three phrases: no operators


def split_phrase(phrase: str) -> list[str]:
    """Return the normalized words of a phrase, with its alternatives `a/b` and its operators."""
    if not _is_lower_ascii(phrase):
        phrase = phrase.lower().translate(_PHRASE_TABLE)
        phrase = (
            phrase if phrase.isascii() else "".join(char if char < _FIRST_CJK_CHAR else f" {char} " for char in phrase)
        )
    return phrase.split()


def parse_phrases(texts: Iterable[str]) -> tuple[Phrase, ...]:
    """Parse phrases; each alternative of `a/b` becomes a phrase of its own."""
    parsed = []
    for phrase in texts:
        if _is_plain_words(phrase):
            parsed.append(Phrase((f" {phrase} ",), tuple(phrase.split())))
            continue
        for words in product(*(word.split("/") for word in split_phrase(phrase))):
            parts = tuple(f" {part.strip()} " for part in " ".join(words).split("*"))
            parsed.append(Phrase(parts, tuple(word for word in words if word not in OPERATORS)))
    return tuple(parsed)
