"""Recognise answers that say nothing: endless repetition, random characters, stubs."""

from __future__ import annotations

import re
import zlib
from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

_RULER: Final = LazyPattern(r"([-=*_~#.+|\s])\1{3,}")  # a line across the page, an indentation
_DIGITS: Final = LazyPattern(r"\d+")
_MIN_REPEATED_CHARS: Final = 24
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
    if _DATA_START.match(bare):
        return False  # data and tables repeat their keys
    words = bare.split()
    last = words[-_LAST_WORDS:]
    if len(set(last)) > len(last) * _MAX_DISTINCT_SHARE and len(words) * _LONG_WORD > len(bare):
        return False  # most texts: different words, of usual length
    echoes = sum(map(str.__eq__, words, words[1:]))
    if len(words) >= _MIN_WORDS and echoes >= len(words) * _MIN_ECHO_SHARE:
        return True
    flat = _RULER.sub(r"\1", _DIGITS.sub("0", bare))
    return any(_is_compressible(flat[-chars:]) for chars in _TAIL_CHARS)


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


def is_gibberish(text: str) -> bool:
    """Return whether many words of a prose, or of its end, mix letters, digits and symbols at random."""
    if len(_SYMBOLS.intersection(text)) < _MIN_SYMBOLS or _DATA_START.match(text):
        return False
    prose = _LINKS_AND_CODE.sub(" ", text)
    words = prose.split()[-_MAX_PROSE_WORDS:]
    odd = sum(_ODD_WORD.search(word) is not None for word in words)
    if len(words) < _MIN_PROSE_WORDS or odd < len(words) * _MIN_ODD_SHARE:
        return False
    return len(_CODE_LINE.findall(prose)) < _MIN_CODE_LINES


_STUB: Final = LazyPattern(
    r"[\[(<*]{1,4}(?:no|none|empty|missing)\b[^\n]{0,80}[\])>*]|(?:n/?a|none|null|undefined|nan|todo|tbd|\.+|-+)\Z",
    re.IGNORECASE,
)


def is_stub(text: str) -> bool:
    """Return whether a remark in brackets, or a word for nothing, stands in the place of the answer."""
    found = _STUB.match(text.strip())
    return found is not None and found.end() == len(text.strip())
