"""Recognise answers that say nothing: endless repetition, random characters, stubs."""

from __future__ import annotations

import re
import zlib
from itertools import pairwise
from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

_RULER: Final = LazyPattern(r"([-=*_~#.+|\s])\1{3,}")  # a line across the page, an indentation
_DIGITS: Final = LazyPattern(r"\d+")
_MIN_REPEATED_CHARS: Final = 24
_MIN_EQUAL_CHARS: Final = 10  # of an answer that is one character; digits may be a number
_FILL_TOKENS: Final = ("[PAD]", "<pad>", "[UNK]", "<unk>", "[MASK]", "<mask>")
_FILL_RUN: Final = LazyPattern(r"(?:[\[<](?:PAD|pad|UNK|unk|MASK|mask)[\]>]\s*){4}")
_MAX_ALTERNATING: Final = 2  # one character, or two that alternate
_MIN_WORDS: Final = 16
_MIN_ECHO_SHARE: Final = 0.5  # of words that equal the word before them
_LAST_WORDS: Final = 80
_MAX_DISTINCT_SHARE: Final = 0.6
_LONG_WORD: Final = 20  # characters: a text of longer words is not written in words
_TAIL_CHARS: Final = (100_000, 1_000, 240)  # the whole text, its end, and its last lines
_MIN_CHARS: Final = 240
_MAX_COMPRESSED: Final = 0.22  # prose compresses to 0.4 and more, a table to 0.3


def repeats_itself(text: str) -> bool:
    """Return whether the text, or its end, repeats the same characters, words or lines without end."""
    bare = text.strip()
    if len(bare) >= _MIN_REPEATED_CHARS and len(set(bare)) <= _MAX_ALTERNATING:
        return True
    if len(bare) >= _MIN_EQUAL_CHARS and not bare[0].isdigit() and bare == bare[0] * len(bare):
        return True
    if any(map(bare.__contains__, _FILL_TOKENS)) and _FILL_RUN.search(bare):
        return True
    if _DATA_START.match(bare):
        return False  # data and tables repeat their keys
    words = bare.split()
    last = words[-_LAST_WORDS:]
    if len(set(last)) > len(last) * _MAX_DISTINCT_SHARE and len(words) * _LONG_WORD > len(bare):
        return False  # most texts: different words, of usual length
    if _repeats_a_sentence(bare) or _repeats_words(words):
        return True
    echoes = sum(map(str.__eq__, words, words[1:]))
    if len(words) >= _MIN_WORDS and echoes >= len(words) * _MIN_ECHO_SHARE:
        return True
    flat = _RULER.sub(r"\1", _DIGITS.sub("0", bare))
    return any(_is_compressible(flat[-chars:]) for chars in _TAIL_CHARS)


_SENTENCE_END: Final = LazyPattern(r"(?<=[.!?\u3002])\s*|\n+")
_MIN_EQUAL_SENTENCES: Final = 5


def _repeats_a_sentence(text: str) -> bool:
    """Return whether the last sentences are all the same."""
    last = [sentence for sentence in map(str.strip, _SENTENCE_END.split(text)) if sentence][-_MIN_EQUAL_SENTENCES:]
    return len(last) == _MIN_EQUAL_SENTENCES and len(set(last)) == 1 and " " in last[0]


_MAX_PERIOD: Final = 6  # words
_MIN_PERIODS: Final = 6


def _repeats_words(words: list[str]) -> bool:
    """Return whether the end repeats the same few words."""
    return any(
        len(words) >= period * _MIN_PERIODS
        and words[-period * (_MIN_PERIODS - 1) :] == words[-period * _MIN_PERIODS : -period]
        for period in range(2, _MAX_PERIOD + 1)
    )


def _is_compressible(text: str) -> bool:
    raw = text.encode("utf-8", "replace")
    return len(text) >= _MIN_CHARS and len(zlib.compress(raw)) < len(raw) * _MAX_COMPRESSED


_DATA_START: Final = LazyPattern(r"\s*(?:[{\[]|<(?!\|)|\|(?!\|)|[\w.]{1,80}\()")
_ODD_WORD: Final = LazyPattern(
    r"[^\W\d_][^\w\s'.,:;/()\-\u2019]+[^\W_]|[a-z][A-Z][a-z]*[^\w\s]|[^\W\d_]\d+[^\W\d_]|[a-z]'\.|=[&*/>]"
)
_SYMBOLS: Final = frozenset("=&*$#@%^+<>;{}~\\")
_MIN_SYMBOLS: Final = 4
_LINKS_AND_CODE: Final = LazyPattern(r"```.*?(?:```|\Z)|`[^`\n]{0,200}`|\]\([^)\s]{0,400}\)|https?://\S+", re.DOTALL)
_CODE_LINE: Final = LazyPattern(
    r"[;{}][ \t]*$|^[ \t]*(?:def|class|import|from|return|if|for|const|let|var|function)\b.*[:;({]", re.MULTILINE
)
_MIN_CODE_LINES: Final = 3
_MIN_PROSE_WORDS: Final = 40
_MAX_PROSE_WORDS: Final = 120  # the end is enough
_MIN_ODD_SHARE: Final = 0.2
_MIN_SHORT_WORDS: Final = 20
_QUOTES: Final = frozenset("\"'()")
_MIN_SHORT_ODD_SHARE: Final = 0.5


# Scripts that no word combines: first and last character. Latin is not among them, names and terms stand in any text.
_SCRIPTS: Final = (
    ("\u0400", "\u052f"), ("\u0530", "\u058f"), ("\u0590", "\u05ff"), ("\u0600", "\u06ff"), ("\u0900", "\u0dff"), ("\u0e00", "\u0eff"), ("\u10a0", "\u10ff"), ("\u3040", "\u9fff"),
    ("\uac00", "\ud7a3"),
)  # fmt: skip
_MIN_SCRIPTS: Final = 4
_MIN_CHANGES: Final = 2  # from one script to another inside a word


def _script_of(char: str) -> int | None:
    for number, (first, last) in enumerate(_SCRIPTS):
        if first <= char <= last:
            return number
    return None


_MIN_GLUED_SCRIPTS: Final = 2
_MIN_GLUED_WORDS: Final = 3
_ALPHABETS: Final = 6  # the first scripts have spaces between words, so no letter of them touches a Latin one


def _glued_words(text: str, scripts: dict[str, int]) -> int:
    """Return how often a lower-case Latin letter touches a letter of another alphabet."""
    return sum(
        (scripts.get(two, _ALPHABETS) < _ALPHABETS and one.isascii() and one.islower())
        or (scripts.get(one, _ALPHABETS) < _ALPHABETS and two.isascii() and two.islower())
        for one, two in pairwise(text)
    )


def mixes_scripts(text: str) -> bool:
    """Return whether words of a text combine scripts that no language combines."""
    if text.isascii():
        return False
    scripts = {char: script for char in set(text) if char.isalpha() and (script := _script_of(char)) is not None}
    if len(set(scripts.values())) >= _MIN_GLUED_SCRIPTS and _glued_words(text, scripts) >= _MIN_GLUED_WORDS:
        return True
    if len(set(scripts.values())) < _MIN_SCRIPTS:
        return False
    changes = sum(scripts[one] != scripts[two] for one, two in pairwise(text) if one in scripts and two in scripts)
    return changes >= _MIN_CHANGES


def is_gibberish(text: str) -> bool:
    """Return whether many words of a prose, or of its end, mix letters, digits, symbols or scripts at random."""
    if mixes_scripts(text):
        return True
    if len(_SYMBOLS.intersection(text)) < _MIN_SYMBOLS or _DATA_START.match(text):
        return False
    prose = _LINKS_AND_CODE.sub(" ", text)
    words = prose.split()[-_MAX_PROSE_WORDS:]
    odd = sum(_ODD_WORD.search(word) is not None for word in words)
    is_short = len(words) < _MIN_PROSE_WORDS
    if is_short and not _QUOTES.isdisjoint(text):
        return False  # a few lines of code
    if len(words) < _MIN_SHORT_WORDS or odd < len(words) * (_MIN_SHORT_ODD_SHARE if is_short else _MIN_ODD_SHARE):
        return False
    return len(_CODE_LINE.findall(prose)) < _MIN_CODE_LINES


_STUB: Final = LazyPattern(
    r"[\[(<*]{1,4}(?:no|none|empty|missing|insert|placeholder|your|todo)\b[^\n]{0,80}[\])>*]|(?:n/?a|none|null|undefined|nan|todo|tbd|\.+|-+)\Z|(?:todo|tbd|fixme)\b:?[^\n]{0,60}\Z"
    r"|\W{0,4}end of (?:the )?(?:summary|response|answer|document|report|text|output|message|transcript)\W{0,4}\Z",
    re.IGNORECASE,
)

_FILLER: Final = LazyPattern(r"\W{0,9}lorem ipsum dolor\b", re.IGNORECASE)


def is_stub(text: str) -> bool:
    """Return whether a remark in brackets, or a word for nothing, stands in the place of the answer."""
    if _FILLER.match(text):
        return True
    found = _STUB.match(text.strip())
    return found is not None and found.end() == len(text.strip())
