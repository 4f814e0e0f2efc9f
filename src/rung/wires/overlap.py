"""Removal of the overlap between a text and its continuation, which may repeat the end or the start of the text."""

from __future__ import annotations

import re
from typing import Final

MIN_OVERLAP_CHARACTERS: Final = 8  # a shorter match may be a coincidence ("rub" and "ber")
MAX_OVERLAP_CHARACTERS: Final = 2_000  # longest end of the text that is searched for

MAX_WORD_CHARACTERS: Final = 40  # a longer last word is text without spaces
_LAST_WORD: Final = re.compile(r"(?<=\s)\S{1,40}\Z")


def last_word(text: str) -> str:
    """Return the last word of a text, which may be incomplete; empty if the text ends with a space or has no other word."""
    found = _LAST_WORD.search(text[-MAX_WORD_CHARACTERS - 1 :])
    return found[0] if found else ""


def whole_words(text: str) -> str:
    """Return a text without its last word: a model that is asked to go on from there writes that word whole."""
    return text.removesuffix(last_word(text))


class OverlapFilter:
    """Incremental filter that removes from a continuation the text that was sent before.

    A model asked to continue may repeat its last words, or start over. The filter buffers the pieces while they may
    be a repetition, then removes the repeated text once.
    """

    def __init__(self, previous: str) -> None:
        self._previous = previous
        self._tail = previous[-MAX_OVERLAP_CHARACTERS:]
        self._word = last_word(previous)
        self._buffered = ""
        self.is_resolved = not previous

    def feed(self, text: str) -> str:
        """Add a piece. Return the text that is known to be new."""
        if self.is_resolved:
            return text
        self._buffered += text
        if self._buffered in self._tail or self._previous.startswith(self._buffered):
            return ""
        if self._word.startswith(self._buffered.lstrip()):
            return ""
        return self.close()

    def close(self) -> str:
        """End the overlap search. Return the new part of the buffered text."""
        if self.is_resolved:
            return ""
        self.is_resolved = True
        buffered, self._buffered = self._buffered, ""
        return without_overlap(self._previous, buffered)


def without_overlap(previous: str, more: str) -> str:
    """Return the part of a continuation that does not repeat the text before it.

    A stream may break inside a word. The model is asked to go on before that word (`whole_words`), so its beginning is
    repeated. Without an overlap that shows how the texts join, a space separates two words.
    """
    overlap = overlap_length(previous, more)
    rest = more[overlap:]
    if not overlap and previous and rest and previous[-1].isalnum() and rest[0].isalnum():
        return " " + rest
    return rest


def overlap_length(previous: str, more: str) -> int:
    """Return the number of characters at the start of a continuation that repeat the text before it."""
    if more.startswith(previous):
        return len(previous)
    shortest = min(MIN_OVERLAP_CHARACTERS, len(previous))
    for size in range(min(len(previous), len(more), MAX_OVERLAP_CHARACTERS), shortest - 1, -1):
        if previous.endswith(more[:size]):
            return size
    if previous.startswith(more) and len(more) >= shortest:
        return len(more)
    word, begun = last_word(previous), more.lstrip()
    return len(more) - len(begun) + len(word) if word and begun.startswith(word) else 0
