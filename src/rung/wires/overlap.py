"""What a continuation says again is said once: the overlap between what was said and what follows it."""

from __future__ import annotations

from typing import Final

LEAST: Final = 8  # characters: fewer agree by chance ("rub" and "ber")
WINDOW: Final = 2_000  # of what was said, how much of its end may come again


class OverlapFilter:
    """Takes a continuation piece by piece and gives back what has not been said yet.

    A model asked to go on may begin with its last words again, or with its first ones. As long as that is
    possible the pieces are held; then what was said before is cut off, once.
    """

    def __init__(self, said: str) -> None:
        self._said = said
        self._end = said[-WINDOW:]
        self._held = ""
        self.settled = not said

    def feed(self, text: str) -> str:
        """The new part of what is known so far."""
        if self.settled:
            return text
        self._held += text
        if self._held in self._end or self._said.startswith(self._held):
            return ""
        return self.close()

    def close(self) -> str:
        """The new part of what is held: nothing more comes, or no more can be repeated."""
        if self.settled:
            return ""
        self.settled = True
        held, self._held = self._held, ""
        return unsaid(self._said, held)


def unsaid(said: str, more: str) -> str:
    """The part of a continuation that was not said before.

    A service stops between words, and a model begins without a space: where two words would run into one
    and nothing was repeated that shows how they join, they are kept apart.
    """
    known = repeated(said, more)
    rest = more[known:]
    if not known and said and rest and said[-1].isalnum() and rest[0].isalnum():
        return " " + rest
    return rest


def repeated(said: str, more: str) -> int:
    """How many characters at the start of a continuation were said already."""
    if more.startswith(said):
        return len(said)
    least = min(LEAST, len(said))
    for size in range(min(len(said), len(more), WINDOW), least - 1, -1):
        if said.endswith(more[:size]):
            return size
    if said.startswith(more) and len(more) >= least:
        return len(more)
    return 0
