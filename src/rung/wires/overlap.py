"""Removal of the overlap between a text and its continuation, which may repeat the end or the start of the text."""

from __future__ import annotations

import re
from typing import Final

from rung.wires.preface import MAX_PREFACE_CHARACTERS, find_preface, may_be_preface

MIN_OVERLAP_CHARACTERS: Final = 8  # a shorter match may be a coincidence ("rub" and "ber")
MAX_OVERLAP_CHARACTERS: Final = 2_000  # longest end of the text that is searched for
_FENCE_END: Final = re.compile(r"(?:\n`{0,3}\s*)?$")

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

    A model asked to continue may introduce the rest, repeat its last words, or start over. The filter buffers the pieces
    while they may be such a preface or repetition, then removes it once.
    """

    def __init__(self, previous: str) -> None:
        self._previous = previous
        self._tail = previous[-MAX_OVERLAP_CHARACTERS:]
        self._word = last_word(previous)
        self._buffered = ""
        self._has_begun = False  # there is no preface, or it was removed
        self._is_fenced = False  # a code fence around the continuation is removed
        self._end = ""  # may be the end of that fence
        self.is_resolved = not previous

    def feed(self, text: str) -> str:
        """Add a piece. Return the text that is known to be new."""
        if self.is_resolved:
            return self._without_fence(text) if self._is_fenced else text
        self._buffered += text
        if not self._has_begun:
            if len(self._buffered) < MAX_PREFACE_CHARACTERS and may_be_preface(self._buffered):
                return ""
            self._begin()
        if self._buffered in self._tail or self._previous.startswith(self._buffered):
            return ""
        if self._word.startswith(self._buffered.lstrip()):
            return ""
        return self._resolve()

    def close(self) -> str:
        """End the search. Return the new part of the buffered text."""
        if self.is_resolved:
            end, self._end = self._end, ""
            return "" if "`" in end else end
        if not self._has_begun:
            self._begin()
        return self._resolve()

    def _begin(self) -> None:
        preface = find_preface(self._previous, self._buffered)
        self._buffered = self._buffered[preface.length :]
        self._has_begun, self._is_fenced = True, preface.is_fenced

    def _resolve(self) -> str:
        self.is_resolved = True
        buffered, self._buffered = self._buffered, ""
        new = _join(self._previous, buffered)
        return self._without_fence(new) if self._is_fenced else new

    def _without_fence(self, text: str) -> str:
        """Return the text so far without what may be the end of the fence."""
        text = self._end + text
        end = _FENCE_END.search(text)
        assert end is not None  # noqa: S101  # the pattern matches the empty text
        self._end = end[0]
        return text[: end.start()]


class RepetitionFilter:
    """Incremental filter for an answer that is asked for again whole: it must repeat the text that was sent before."""

    def __init__(self, previous: str) -> None:
        self._previous = previous
        self._buffered = ""
        self.is_resolved = not previous
        self.has_diverged = False  # the new answer is another one: it cannot be joined

    def feed(self, text: str) -> str:
        """Add a piece. Return the text that is known to be new."""
        if self.is_resolved:
            return "" if self.has_diverged else text
        self._buffered += text
        if len(self._buffered) < len(self._previous) and self._previous.startswith(self._buffered):
            return ""
        self.is_resolved = True
        self.has_diverged = not self._buffered.startswith(self._previous)
        return "" if self.has_diverged else self._buffered[len(self._previous) :]

    def close(self) -> str:
        """End the search: an answer that is shorter than the text before is another one."""
        if not self.is_resolved:
            self.is_resolved = self.has_diverged = True
        return ""


def without_overlap(previous: str, more: str) -> str:
    """Return the part of a continuation that is new."""
    overlap = OverlapFilter(previous)
    return overlap.feed(more) + overlap.close() + overlap.close()


def _join(previous: str, more: str) -> str:
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
