"""Phrases: what rules look for in a text, in words rather than in regular expressions.

A text is brought into one shape: small letters, one space between words, punctuation gone, a "|" for the
end of a line. A phrase is words in that shape, with three signs: `a/b` is either word, `*` a gap of up to
GAP characters, `^` and `$` the start and the end of a line. Nothing here can take more than linear time,
whoever writes the phrase or the text.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.lazy_regex import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP: Final = 100
_SIGNS: Final = frozenset({"*", "|"})
_TRIES: Final = 8  # of the first part of a phrase with gaps; more are not looked at

# What stands between words becomes a space and letters become small, a byte at a time: the fastest way there is.
_BETWEEN: Final = b'!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\r\x0b\x0c\x00'
_ASCII: Final = range(128)
_SHAPE: Final = bytes(32 if byte not in _ASCII or byte in _BETWEEN else ord(chr(byte).lower()) for byte in range(256))
# Chinese, Japanese and Korean are written without spaces: there each sign is a word.
_SIGN: Final = Pattern("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])")
_FIRST_SIGN: Final = "\u3040"
_NO_LEAD: Final = bytes(byte for byte in range(256) if byte not in range(0xE3, 0xEE))  # all bytes but their first ones
_WIDE: Final = bytes(_SHAPE[byte] if byte in _ASCII else byte for byte in range(256))


def words_of(text: str) -> list[str]:
    """The words of a text, with the ends of its lines, also before the first and after the last."""
    flat = text.encode("utf-8", "replace")
    table = _SHAPE
    if len(flat) != len(text):
        flat = flat.replace(b"\xe2\x80\x99", b"")  # the other apostrophe
        if flat.translate(None, _NO_LEAD):
            table = _WIDE
            flat = _SIGN.sub(r" \1 ", flat.decode()).encode()
    # Without its apostrophes: "don't" is one word.
    flat = flat.translate(table, b"'").replace(b"\n", b" | ")
    return (b"| " + flat + b" |").decode().split()


def shaped(words: Sequence[str]) -> str:
    """Words as a text in the one shape."""
    return f" {' '.join(words)} "


class Phrase(NamedTuple):
    """One phrase: its parts between gaps, and its words."""

    parts: tuple[str, ...]
    words: tuple[str, ...]

    def found_in(self, text: str) -> bool:
        """Is it in a shaped text?"""
        first = self.parts[0]
        if len(self.parts) == 1:
            return first in text
        others = self.parts[1:]
        start = text.find(first)
        for _ in range(_TRIES):
            if start < 0:
                return False
            at = start + len(first) - 1
            for part in others:
                at = text.find(part, at, at + GAP + len(part))
                if at < 0:
                    break
                at += len(part) - 1
            else:
                return True
            start = text.find(first, start + 1)
        return False


# What a person may write in a phrase, brought into the shape; the signs keep their meaning.
_WRITTEN: Final = {ord(char): " " for char in '!"#%&()+,-.:;<=>?@[\\]_`{|}~\t\n\r'} | {
    ord("^"): " | ",
    ord("$"): " | ",
    ord("*"): " * ",
    ord("'"): None,
}


_PLAIN: Final = re.compile(r"[a-z0-9 /]+").fullmatch  # as most are written
_SIMPLE: Final = re.compile(r"[a-z0-9]+(?: [a-z0-9]+)*+").fullmatch  # as two of three are: no signs, no choice


def _words(phrase: str) -> list[str]:
    if not _PLAIN(phrase):
        phrase = phrase.lower().translate(_WRITTEN)
        phrase = phrase if phrase.isascii() else "".join(char if char < _FIRST_SIGN else f" {char} " for char in phrase)
    return phrase.split()


def phrases(written: Iterable[str]) -> tuple[Phrase, ...]:
    """What rules write, ready to be looked for: every choice of `a/b` a phrase of its own."""
    found = []
    for phrase in written:
        if _SIMPLE(phrase):
            found.append(Phrase((f" {phrase} ",), tuple(phrase.split())))
            continue
        for words in product(*(word.split("/") for word in _words(phrase))):
            parts = tuple(f" {part.strip()} " for part in " ".join(words).split("*"))
            found.append(Phrase(parts, tuple(word for word in words if word not in _SIGNS)))
    return tuple(found)
